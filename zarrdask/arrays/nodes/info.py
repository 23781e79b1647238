"""The properties of an array or a group as a table, which `Array.info` and `Group.info` return."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

from zarrdask.display.words import brief_lengths, byte_size, counted, value_text
from zarrdask.errors import UnsupportedError, ZarrdaskError, printable
from zarrdask.formats.codecs.codec import Codec
from zarrdask.formats.grids.chunk_grid import ChunkGrid
from zarrdask.formats.metadata.model import ArrayMetadata, GroupMetadata, Metadata, ZarrFormat

#: The most members of a group that its properties list.
_MAX_MEMBERS = 100
#: The names of data types whose elements are objects of Python, by their codecs.
_OBJECTS = {"vlen-utf8": "string", "vlen-bytes": "bytes"}


@dataclass(frozen=True, repr=False)
class Info:
    """The properties of a node, which print as a table, also in notebooks.

    Attributes
    ----------
    rows : tuple of (str, str)
        The name of each property, and its value as text.

    Examples
    --------
    >>> Info((("array", "data.zarr/a"), ("shape", "(2, 3)")))
    array  data.zarr/a
    shape  (2, 3)
    """

    rows: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        width = max((len(name) for name, _ in self.rows), default=0)
        return "\n".join(f"{name:<{width}}  {printable(text)}" for name, text in self.rows)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        from zarrdask.display.html import table

        return table(self.rows)


def array_info(location: str, metadata: ArrayMetadata, package: str = "") -> Info:
    """Return the properties of the array at a location, whose URL a package opened."""
    return Info((("array", location), *_package_rows(package), *_array_rows(metadata)))


def _package_rows(package: str) -> tuple[tuple[str, str], ...]:
    return (("opened by", package),) if package else ()


def _array_rows(metadata: ArrayMetadata) -> Iterator[tuple[str, str]]:
    fill = metadata.fill_value
    yield "format", format_name(metadata.zarr_format)
    yield "shape", str(metadata.shape)
    yield "dtype", dtype_name(metadata)
    if not metadata.dtype.hasobject:
        yield "size", _size(metadata)
    yield "chunks", f"{metadata.read_grid.chunks}, {metadata.read_grid.size} of them"
    if metadata.shard is not None:
        yield "shards", f"{metadata.grid.chunks}, {metadata.grid.size} of them"
    if metadata.dimension_names:
        yield "dimensions", ", ".join(name or "-" for name in metadata.dimension_names)
    yield "codecs", ", ".join(map(describe, metadata.codecs))
    shown = repr(fill) if isinstance(fill, str | bytes) else value_text(fill)
    yield "fill value", "undefined, read as zeros" if fill is None else shown
    if metadata.transformers:
        yield "transformers", ", ".join(type(each).__name__ for each in metadata.transformers)
    yield "attributes", str(len(metadata.attributes))


def group_info(
    location: str,
    metadata: GroupMetadata,
    members: Iterable[tuple[str, Metadata | ZarrdaskError]],
    package: str = "",
    more: Iterable[tuple[str, str]] = (),
) -> Info:
    """Return the properties of the group at a location, with a row for each member.

    `package` is the name of the one that opened its URL, if any; `more` are other rows.
    """
    rows = []
    for name, member in members:
        text = "group" if isinstance(member, GroupMetadata) else _description(member)
        rows.append((f"  {printable(name)}", text))
    omitted = len(rows) - _MAX_MEMBERS
    return Info(
        (
            ("group", location),
            *_package_rows(package),
            ("format", format_name(metadata.zarr_format)),
            ("members", str(len(rows) or "none")),
            *rows[:_MAX_MEMBERS],
            *([("  ...", f"and {omitted} more")] if omitted > 0 else ()),
            *more,
            ("attributes", str(len(metadata.attributes))),
        )
    )


def member_label(name: str, metadata: Metadata | ZarrdaskError) -> str:
    """Return a node as one line: its name, and the properties of an array; or the error."""
    if isinstance(metadata, GroupMetadata):
        return name
    space = "  " if isinstance(metadata, ZarrdaskError) else " "
    return f"{name}{space}{_description(metadata)}"


def _description(metadata: ArrayMetadata | ZarrdaskError) -> str:
    """Return the shape, data type, size, chunks and shards of an array; or the error."""
    if isinstance(metadata, ZarrdaskError):
        return f"can't be opened: {metadata}"
    size = "" if metadata.dtype.hasobject else f", {_size(metadata)}"
    chunks = _grid(metadata.read_grid, "chunk")
    shards = f" in {_grid(metadata.grid, 'shard')}" if metadata.shard else ""
    return f"{metadata.shape} {dtype_name(metadata)}{size}, {chunks}{shards}"


def _size(metadata: ArrayMetadata) -> str:
    return byte_size(prod(metadata.shape) * metadata.dtype.itemsize)


def _grid(grid: ChunkGrid, kind: str) -> str:
    return f"{counted(grid.size, kind)} {brief_lengths(grid.chunks)}"


def dtype_name(metadata: ArrayMetadata) -> str:
    """Return the data type of an array: NumPy's, or "string" or "bytes" for objects.

    >>> from zarrdask.arrays.nodes.create import create_array
    >>> [dtype_name(create_array({}, shape=4, dtype=t).metadata) for t in ("string", "f4")]
    ['string', 'float32']
    """
    if metadata.dtype != object:
        return str(metadata.dtype)
    names = [metadata.data_type.serializer, *(codec.name for codec in metadata.codecs)]
    return next((_OBJECTS[name] for name in names if name in _OBJECTS), "object")


def format_name(zarr_format: ZarrFormat) -> str:
    """Return the name of a format.

    >>> format_name(3), format_name("v3-draft")
    ('Zarr v3', 'Zarr v3-draft')
    """
    return f"Zarr v{zarr_format}" if isinstance(zarr_format, int) else f"Zarr {zarr_format}"


def describe(codec: Codec) -> str:
    """Return a codec and its configuration as text.

    >>> from zarrdask.formats.codecs.bytes_to_bytes.crc32c import Crc32cCodec
    >>> from zarrdask.formats.codecs.bytes_to_bytes.gzip import GzipCodec
    >>> describe(Crc32cCodec()), describe(GzipCodec(5))
    ('crc32c', 'gzip(level=5)')
    """
    try:
        members = dict(codec.to_json().get("configuration") or {})
    except UnsupportedError:
        return codec.name  # the codec has no configuration in the form of v3
    inner: Any = getattr(codec, "codecs", None)
    if inner is not None:
        members = {"chunk_shape": members["chunk_shape"], "codecs": None}
    texts = [
        f"codecs=[{', '.join(map(describe, inner))}]" if name == "codecs" else f"{name}={value}"
        for name, value in members.items()
    ]
    return f"{codec.name}({', '.join(texts)})" if texts else codec.name
