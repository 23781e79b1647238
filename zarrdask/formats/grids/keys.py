"""Chunk key encodings: a chunk's index <-> its key, relative to the array."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol

from zarrdask.errors import UnsupportedError, one_of
from zarrdask.formats.extension import Registry, members_of, parse_definition
from zarrdask.formats.grids.chunk_grid import Index

_SEPARATORS = {"default": "/", "v2": "."}


class ChunkKeyEncoding(Protocol):
    """The interface of chunk key encodings. One is frozen, equal by value, and pickles."""

    def key(self, index: Index) -> str:
        """Return the key of a chunk, relative to its array."""

    def names(self, indices: Sequence[Index]) -> list[str]:
        """Return the keys of many chunks of one array."""

    def index(self, key: str, ndim: int) -> Index | None:
        """Return the chunk index that a key stands for, or None if it is not a chunk key."""

    def to_json(self) -> dict[str, Any]:
        """Return the encoding's v3 metadata, ``{"name": ..., "configuration": ...}``."""


@dataclass(frozen=True, slots=True)
class ChunkKeys:
    """The chunk key encodings of v3 and v2, and of the draft (A-35, B-46, C-37, C-38).

    Attributes
    ----------
    name : {"default", "v2", "draft"}
        Keys of ``default`` begin with a "c", keys of the draft with a "c" and no separator.
    separator : {"/", "."}
        The character between the parts of a key.
    """

    name: Literal["default", "v2", "draft"] = "default"
    separator: Literal["/", "."] = "/"

    def key(self, index: Index) -> str:
        """Return the key of a chunk, relative to its array.

        >>> ChunkKeys().key((1, 23)), ChunkKeys("v2", ".").key((1, 23)), ChunkKeys("v2").key(())
        ('c/1/23', '1.23', '0')
        >>> ChunkKeys("draft").key((1, 23, 45)), ChunkKeys("draft").key(())
        ('c1/23/45', 'c')
        """
        return self._prefix + self.separator.join(map(str, index)) if index else self._scalars[0]

    def names(self, indices: Sequence[Index]) -> list[str]:
        if not indices or not indices[0]:
            return [self._scalars[0]] * len(indices)
        if len(indices) == 1:
            return [self.key(indices[0])]
        form = self._prefix + self.separator.join(["%d"] * len(indices[0]))
        return [form % index for index in indices]

    def index(self, key: str, ndim: int) -> Index | None:
        if not ndim:
            return () if key in self._scalars else None
        if not key.startswith(self._prefix):
            return None
        return parse_index(key[len(self._prefix) :].split(self.separator), ndim)

    @property
    def _scalars(self) -> tuple[str, ...]:
        """The keys of the one chunk of an array without axes; old writers of the draft add a 0."""
        return {"default": ("c",), "v2": ("0",), "draft": ("c", "c0")}[self.name]

    @property
    def _prefix(self) -> str:
        if self.name == "default":
            return f"c{self.separator}"
        return "" if self.name == "v2" else "c"

    def to_json(self) -> dict[str, Any]:
        if self.name == "draft":
            raise UnsupportedError(
                "only the draft of Zarr v3 has such chunk keys",
                key="chunk_key_encoding",
                found=self.key((0, 0)),
            )
        return {"name": self.name, "configuration": {"separator": self.separator}}


def parse_index(parts: Sequence[str], ndim: int) -> Index | None:
    """Return the chunk index that the parts of a key stand for, or None if there is none."""
    if len(parts) != ndim or not all(p.isdecimal() and str(int(p)) == p for p in parts):
        return None
    return tuple(map(int, parts))


def _separated(name: Any, configuration: Mapping[str, Any]) -> ChunkKeys:
    key = f"chunk_key_encoding {name}"
    separator = members_of(configuration, key, {"separator": _SEPARATORS[name]})["separator"]
    return ChunkKeys(name, one_of(separator, f"{key} separator", ("/", ".")))


#: The encodings ``default`` and ``v2`` (conformance C-37, C-38), for their configurations.
PARSERS = {name: partial(_separated, name) for name in _SEPARATORS}
KEY_ENCODINGS: Registry[Callable[[Mapping[str, Any]], ChunkKeyEncoding]] = Registry(
    "chunk key encoding",
    "chunk_key_encoding",
    "zarrdask.chunk_key_encodings",
    {
        **dict.fromkeys(PARSERS, "zarrdask.formats.grids.keys:PARSERS"),
        "template": "zarrdask.formats.grids.template:PARSERS",
    },
)


def parse_keys(value: Any) -> ChunkKeyEncoding:
    """Return the encoding that ``chunk_key_encoding`` describes: a name or an object (C-18)."""
    # An unknown encoding raises an error for any ``must_understand`` (C-14).
    definition = parse_definition(value, "chunk_key_encoding")
    return KEY_ENCODINGS.find(definition.name)(definition.configuration)
