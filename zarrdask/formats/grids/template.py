"""The chunk key encoding ``template``: keys that a format has, such as ``t{0:04}/y{1}.x{2}``."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from zarrdask.errors import MetadataError
from zarrdask.formats.extension import members_of
from zarrdask.formats.grids.chunk_grid import Index

_KEY = "chunk_key_encoding template"
#: Doubled braces, a placeholder, or a brace that is neither.
_TOKEN = re.compile(r"\{\{|\}\}|\{(?P<axis>\*|-?\d+)(?::0(?P<width>\d+))?\}|[{}]")
#: The longest number in a key: an index has less than 19 digits.
_MAX_WIDTH = 64


class _Number(NamedTuple):
    """A field for the index along an axis, or along all axes without a field of their own (None).

    `width` is the least number of digits.
    """

    axis: int | None
    width: int


@dataclass(frozen=True)
class TemplateKeys:
    """Chunk keys that a format describes.

    Attributes
    ----------
    format : str
        The format. ``{0}`` is the chunk's index along the first axis, ``{-1}`` along the last,
        ``{0:03}`` has at least three digits, and ``{*}`` is the indices along all axes that have no
        field of their own. ``{{`` and ``}}`` are braces.
    separator : str, optional
        The text between the indices of ``{*}``.
    """

    format: str
    separator: str | None = None

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> "TemplateKeys":
        """Return the encoding that a configuration describes."""
        members = members_of(configuration, _KEY, {"format": ..., "separator": None})
        for name, value in members.items():
            if not isinstance(value, str) and not (name == "separator" and value is None):
                raise MetadataError("invalid value", key=f"{_KEY} {name}", found=value)
        keys = cls(**members)
        numbers = keys._numbers
        if keys.separator is None and any(number.axis is None for number in numbers):
            raise keys._bad("{*} needs a separator", "the member separator")
        return keys

    def key(self, index: Index) -> str:
        """Return the key of a chunk, relative to its array.

        >>> TemplateKeys("t{0:04}/{*}", "x").key((7, 1, 23))
        't0007/1x23'
        """
        return _layout(self, len(index)).form.format(*index)

    def names(self, indices: Sequence[Index]) -> list[str]:
        form = _layout(self, len(indices[0])).form if indices else ""
        return [form.format(*index) for index in indices]

    def index(self, key: str, ndim: int) -> Index | None:
        layout = _layout(self, ndim)
        match = layout.pattern.fullmatch(key)
        if match is None:
            return None
        numbers = dict(zip(layout.axes, map(int, match.groups()), strict=True))
        index = tuple(numbers[axis] for axis in range(ndim))
        return index if self.key(index) == key else None

    def to_json(self) -> dict[str, Any]:
        own = {"format": self.format}
        if self.separator is not None:
            own["separator"] = self.separator
        return {"name": "template", "configuration": own}

    @cached_property
    def _parts(self) -> tuple[str | _Number, ...]:
        """The texts and numbers of the format."""
        parts, at = list[str | _Number](), 0
        for match in _TOKEN.finditer(self.format):
            parts.append(self.format[at : match.start()])
            axis, width = match.group("axis", "width")
            at = match.end()
            if axis is not None:
                number = None if axis == "*" else int(axis)
                parts.append(_Number(number, min(int(width or 0), _MAX_WIDTH + 1)))
            elif len(match.group()) == 2:
                parts.append(match.group()[0])
            else:
                raise self._bad("a brace is not part of a placeholder", "{0}, {-1:03}, {*} or {{")
        parts.append(self.format[at:])
        return tuple(part for part in parts if part != "")

    @property
    def _numbers(self) -> list[_Number]:
        numbers = [part for part in self._parts if isinstance(part, _Number)]
        if any(number.width > _MAX_WIDTH for number in numbers):
            raise self._bad("too many digits", f"at most {_MAX_WIDTH}")
        if sum(number.axis is None for number in numbers) > 1:
            raise self._bad("{*} occurs more than once", "one")
        return numbers

    def _bad(self, reason: str, expected: str) -> MetadataError:
        return MetadataError(reason, key=f"{_KEY} format", found=self.format, expected=expected)


class _Layout(NamedTuple):
    """The keys of arrays with a number of axes."""

    #: The keys, as a format of Python.
    form: str
    pattern: re.Pattern[str]
    #: The axes of the numbers in a key, in their order.
    axes: tuple[int, ...]


@lru_cache(maxsize=256)
def _layout(keys: TemplateKeys, ndim: int) -> _Layout:
    """Return the layout of the keys of arrays with `ndim` axes; an error if chunks share a key."""
    own = [n.axis for n in keys._numbers if n.axis is not None]
    axes = [axis + ndim if axis < 0 else axis for axis in own]
    if len({*axes}) < len(axes) or not all(0 <= axis < ndim for axis in axes):
        raise keys._bad("invalid axes", f"each of {ndim} axes at most once")
    others = [axis for axis in range(ndim) if axis not in axes]
    parts, left = list[str | _Number](), iter(axes)
    for part in keys._parts:
        if isinstance(part, str):
            parts.append(part)
        elif part.axis is not None:
            parts.append(_Number(next(left), part.width))
        else:
            for axis in others:
                parts += [_Number(axis, part.width), keys.separator or ""]
            del parts[len(parts) - bool(others) :]
            others = []
    parts = [part for part in parts if part != ""]
    if others:
        raise keys._bad("chunks that differ along some axes have the same key", f"axes {others}")
    _check_borders(keys, parts)
    form = "".join(
        f"{{{part.axis}:0{part.width}}}"
        if isinstance(part, _Number)
        else part.replace("{", "{{").replace("}", "}}")
        for part in parts
    )
    _check_path(keys, form.format(*[0] * ndim))
    pattern = "".join(r"(\d+)" if isinstance(p, _Number) else re.escape(p) for p in parts)
    order = tuple(part.axis for part in parts if isinstance(part, _Number))
    return _Layout(form, re.compile(pattern, re.ASCII), order)  # type: ignore[arg-type]


def _check_borders(keys: TemplateKeys, parts: Sequence[str | _Number]) -> None:
    """Check that it can be seen where each number of a key ends."""
    text = "".join("\0" if isinstance(part, _Number) else part for part in parts)
    for between in text.split("\0")[1:-1]:
        if not between.strip("0123456789"):
            raise keys._bad(
                "keys of different chunks may be the same",
                "something other than digits between two indices",
            )


def _check_path(keys: TemplateKeys, key: str) -> None:
    """Check that a key is below the array and is not the key of its metadata."""
    names = key.split("/")
    if {"", ".", ".."} & {*names} or names[0] == "zarr.json" or "\0" in key or "\\" in key:
        raise keys._bad(f"invalid chunk key {key!r}", "a path below the array, not zarr.json")


#: The encoding, for its configuration.
PARSERS = {"template": TemplateKeys.from_configuration}
