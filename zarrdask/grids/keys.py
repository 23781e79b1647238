"""Chunk key encodings: a chunk's index <-> its key, relative to the array."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol

from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.extension import Registry, parse_definition
from zarrdask.grids.base import Index

_SEPARATORS = {"default": "/", "v2": "."}


class ChunkKeyEncoding(Protocol):
    """The interface of chunk key encodings. One is frozen, equal by value, and pickles."""

    def key(self, index: Index) -> str:
        """Return the key of a chunk, relative to its array."""

    def names(self, indices: Sequence[Index]) -> list[str]:
        """Return the keys of many chunks of one array."""

    def index(self, key: str, ndim: int) -> Index | None:
        """Return the chunk index that a key stands for, or None if it is no chunk key."""

    def to_json(self) -> dict[str, Any]:
        """Return the encoding's v3 metadata, ``{"name": ..., "configuration": ...}``."""


@dataclass(frozen=True, slots=True)
class ChunkKeys:
    """The two encodings of v3; v2 has the one of that name (conformance A-35, C-37, C-38).

    Attributes
    ----------
    name : {"default", "v2"}
        Keys of ``default`` begin with a "c".
    separator : {"/", "."}
        The character between the parts of a key.
    """

    name: Literal["default", "v2"] = "default"
    separator: Literal["/", "."] = "/"

    def key(self, index: Index) -> str:
        """Return the key of a chunk, relative to its array.

        >>> ChunkKeys().key((1, 23)), ChunkKeys("v2", ".").key((1, 23)), ChunkKeys("v2").key(())
        ('c/1/23', '1.23', '0')
        """
        if self.name == "default":
            return self.separator.join(("c", *map(str, index)))
        return self.separator.join(map(str, index)) or "0"

    def names(self, indices: Sequence[Index]) -> list[str]:
        """Return the keys of many chunks."""
        if not indices or not indices[0]:
            return list(map(self.key, indices))
        form = self.separator.join(["%d"] * len(indices[0]))
        if self.name == "default":
            form = f"c{self.separator}{form}"
        return [form % index for index in indices]

    def index(self, key: str, ndim: int) -> Index | None:
        """Return the chunk index that a key stands for, or None if it is no chunk key."""
        parts = key.split(self.separator)
        if self.name == "default":
            if parts[0] != "c":
                return None
            parts = parts[1:]
        elif ndim == 0:
            return () if key == "0" else None
        return parse_index(parts, ndim)

    def to_json(self) -> dict[str, Any]:
        """Return the encoding's v3 metadata."""
        return {"name": self.name, "configuration": {"separator": self.separator}}


@dataclass(frozen=True, slots=True)
class DraftKeys:
    """The encoding of the v3 draft: a "c" without a separator after it (conformance B-46, B-47).

    Attributes
    ----------
    separator : {"/", "."}
        The character between the indices.
    """

    separator: Literal["/", "."] = "/"

    def key(self, index: Index) -> str:
        """Return the key of a chunk, relative to its array.

        >>> DraftKeys().key((1, 23, 45)), DraftKeys(".").key((1, 23, 45)), DraftKeys().key(())
        ('c1/23/45', 'c1.23.45', 'c')
        """
        return "c" + self.separator.join(map(str, index))

    def names(self, indices: Sequence[Index]) -> list[str]:
        """Return the keys of many chunks."""
        if not indices or not indices[0]:
            return list(map(self.key, indices))
        form = "c" + self.separator.join(["%d"] * len(indices[0]))
        return [form % index for index in indices]

    def index(self, key: str, ndim: int) -> Index | None:
        """Return the chunk index that a key stands for, or None if it is no chunk key."""
        if not key.startswith("c"):
            return None
        if not ndim:
            # Older software writes an index for the one chunk of a 0-d array.
            return () if key in ("c", "c0") else None
        return parse_index(key[1:].split(self.separator), ndim)

    def to_json(self) -> dict[str, Any]:
        """Raise `UnsupportedError`, as v3 has no such encoding."""
        raise UnsupportedError(
            "only the draft of Zarr v3 has such chunk keys",
            key="chunk_key_encoding",
            found=self.key((0, 0)),
        )


def parse_index(parts: Sequence[str], ndim: int) -> Index | None:
    """Return the chunk index that the parts of a key stand for, or None if there is none."""
    if len(parts) != ndim or not all(p.isdecimal() and str(int(p)) == p for p in parts):
        return None
    return tuple(map(int, parts))


def _separated(name: Any, configuration: Mapping[str, Any]) -> ChunkKeys:
    separator = configuration.get("separator", _SEPARATORS[name])
    if separator not in ("/", ".") or set(configuration) - {"separator"}:
        raise MetadataError(
            "this is not the configuration of a chunk key encoding",
            key="chunk_key_encoding",
            found=dict(configuration),
            expected='{"separator": "/"} or {"separator": "."}',
        )
    return ChunkKeys(name, separator)


#: The encodings ``default`` and ``v2`` (conformance C-37, C-38), for their configurations.
PARSERS = {name: partial(_separated, name) for name in _SEPARATORS}
KEY_ENCODINGS: Registry[Callable[[Mapping[str, Any]], ChunkKeyEncoding]] = Registry(
    "chunk key encoding",
    "chunk_key_encoding",
    "zarrdask.chunk_key_encodings",
    dict.fromkeys(PARSERS, "zarrdask.grids.keys:PARSERS"),
)


def parse_keys(value: Any) -> ChunkKeyEncoding:
    """Return the encoding that ``chunk_key_encoding`` describes: a name or an object (C-18)."""
    # An unknown encoding is an error whatever ``must_understand`` says (C-14).
    definition = parse_definition(value, "chunk_key_encoding")
    return KEY_ENCODINGS.find(definition.name)(definition.configuration)
