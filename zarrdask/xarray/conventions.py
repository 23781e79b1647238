"""How xarray's variables are stored in Zarr: dimensions, fill values, attributes, encodings.

The rules are the same as in xarray's own engine, so that both read what either has written
(https://docs.xarray.dev/en/stable/internals/zarr-encoding-spec.html):

=================  ===============================  ============================================
..                 v2 and the drafts of v3          v3
=================  ===============================  ============================================
dimension names    attribute ``_ARRAY_DIMENSIONS``  ``dimension_names`` of the document
CF ``_FillValue``  the array's ``fill_value``       attribute ``_FillValue``: base64 of a little-
                                                    endian float64 for floats, two of them for
                                                    complex numbers, base64 for bytes
array fill value   CF ``_FillValue``                ``encoding["fill_value"]``
codecs             objects of numcodecs; in the     dicts, ``{"name": ..., "configuration": ...}``
                   drafts as in v3
=================  ===============================  ============================================

This module uses arrays and plain values only: it reads no chunks and does not import xarray.
"""

from collections.abc import Hashable, Mapping
from numbers import Number
from typing import Any

from zarrdask.arrays.nodes.array import Array, chunks_of
from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.formats.codecs.codec import Codec, Kind
from zarrdask.formats.dtypes.cf_fill_values import FILL_VALUE, decode_fill_value
from zarrdask.formats.grids.chunk_grid import ChunkGrid
from zarrdask.formats.metadata.model import DIMENSIONS, ArrayMetadata
from zarrdask.formats.metadata.v2_codecs import render_codecs
from zarrdask.xarray.preferred import PreferredChunks, axis_lengths

Chunks = tuple[int | tuple[int, ...], ...]


# --------------------------------------------------------------------------------------------
# Dimensions


def dimensions(metadata: ArrayMetadata) -> tuple[str, ...]:
    """Return the names of an array's dimensions."""
    for names in (
        metadata.dimension_names,
        metadata.attributes.get(DIMENSIONS),
        _nczarr_names(metadata),
    ):
        if _are_names(names, len(metadata.shape)):
            return tuple(names)  # type: ignore[arg-type]
    if not metadata.shape or _is_nczarr_scalar(metadata):
        return ()
    in_attributes = metadata.format.names_in_attributes
    member = f"the attribute {DIMENSIONS}" if in_attributes else "dimension_names"
    raise MissingDimensionsError(
        "the array has no dimension names, which xarray needs; add them, or open with "
        "phony_dims=True to name the dimensions phony_dim_0, phony_dim_1, ...",
        key=member,
        found=metadata.dimension_names,
        expected=f"{len(metadata.shape)} names",
    )


class MissingDimensionsError(MetadataError, KeyError):
    """An array has no dimension names."""


def _are_names(names: Any, ndim: int) -> bool:
    return (
        isinstance(names, tuple | list)
        and len(names) == ndim
        and all(isinstance(name, str) for name in names)
    )


def _nczarr(metadata: ArrayMetadata) -> Mapping[str, Any]:
    """Return NCZarr's description of a v2 array: a member of ``.zarray``, or an attribute."""
    members = {**metadata.extra, **metadata.attributes}
    for name, value in members.items():
        if name.lower() == "_nczarr_array" and isinstance(value, Mapping):
            return value
    return {}


def _nczarr_names(metadata: ArrayMetadata) -> list[Any] | None:
    """Return the dimension names that NCZarr refers to by path, such as ``/group/time``."""
    description = _nczarr(metadata)
    references = description.get("dimrefs", description.get("dimension_references"))
    if not isinstance(references, list):
        return None
    return [ref.rpartition("/")[2] if isinstance(ref, str) else ref for ref in references]


def _is_nczarr_scalar(metadata: ArrayMetadata) -> bool:
    """Whether an array of shape (1,) stands for a scalar, as NCZarr stores them in v2."""
    description = _nczarr(metadata)
    no_references = _nczarr_names(metadata) == []
    return metadata.shape == (1,) and (description.get("storage") == "scalar" or no_references)


def phony_dimensions(arrays: Mapping[str, ArrayMetadata]) -> dict[str, tuple[str, ...]]:
    """Name the dimensions of arrays that have no names.

    Dimensions of one length share a name, ``phony_dim_<number>``, so that arrays of one group fit
    together; two axes of one array never do.

    Examples
    --------
    >>> import zarrdask
    >>> group = zarrdask.create_group({})
    >>> a = group.create_array("a", shape=(4, 4), dtype="i4").metadata
    >>> b = group.create_array("b", shape=(3, 4), dtype="i4").metadata
    >>> phony_dimensions({"a": a, "b": b})
    {'a': ('phony_dim_0', 'phony_dim_1'), 'b': ('phony_dim_2', 'phony_dim_0')}
    """
    numbers: dict[tuple[int, int], int] = {}
    names = {}
    for name, metadata in arrays.items():
        shape = metadata.shape
        # If several axes have one length, the first has one name, the second another, ...
        repeats = [shape[:axis].count(length) for axis, length in enumerate(shape)]
        own = [numbers.setdefault(key, len(numbers)) for key in zip(shape, repeats, strict=True)]
        names[name] = tuple(f"phony_dim_{number}" for number in own)
    return names


# --------------------------------------------------------------------------------------------
# Attributes and fill values


def variable_attributes(metadata: ArrayMetadata, *, mask: bool) -> dict[str, Any]:
    """Return the attributes of a variable; if `mask`, CF's ``_FillValue`` is the fill value."""
    attributes = dict(metadata.attributes)
    attributes.pop(DIMENSIONS, None)
    if metadata.format.names_in_attributes:
        attributes = without_nczarr(attributes)
    if mask:
        if metadata.fill_value is not None:
            attributes[FILL_VALUE] = metadata.fill_value
    elif FILL_VALUE in attributes and not metadata.format.fill_masks:
        attributes[FILL_VALUE] = decode_fill_value(attributes[FILL_VALUE], metadata.dtype)
    return attributes


def check_packing(attributes: Mapping[str, Any], within: str = "") -> None:
    """Check that the attributes, or the values of an encoding, that unpack numbers are numbers.

    Lists with one number are accepted, as NetCDF has them; None stands for no packing. `within`
    says which encoding it is.
    """
    for name in ("scale_factor", "add_offset"):
        value = attributes.get(name)
        number: Any = value[0] if isinstance(value, list | tuple) and len(value) == 1 else value
        number = number.item() if getattr(number, "size", 0) == 1 else number
        if number is not None and (isinstance(number, bool) or not isinstance(number, Number)):
            unpacked = (
                f"; correct it by zarrdask.open_array(..., mode='r+').attrs[{name!r}] = ..., "
                "or read the packed values with mask_and_scale=False"
            )
            advice = "" if within else unpacked
            raise MetadataError(
                f"this must be a number{advice}",
                key=f"{within}{name}",
                found=value,
                expected="a number",
            )


def without_nczarr(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes without those by which NCZarr describes the storage."""
    return {name: value for name, value in attributes.items() if not name.lower().startswith("_nc")}


# --------------------------------------------------------------------------------------------
# Encodings


def variable_encoding(array: Array, dims: tuple[Hashable, ...], *, mask: bool) -> dict[str, Any]:
    """Return the encoding of a variable: what a writer needs to store it as it is stored now.

    The keys and values are those that ``Dataset.to_zarr`` accepts.
    """
    metadata = array.metadata
    factor = chunks_of(array).units.capabilities.costs.block_factor
    encoding: dict[str, Any] = {
        "chunks": _lengths(metadata.read_grid),
        "preferred_chunks": PreferredChunks.of(
            dims, metadata.grid, metadata.dtype.itemsize, factor
        ),
        "shards": None if metadata.shard is None else _lengths(metadata.grid),
    }
    encoding |= _codec_encoding(metadata)
    if not (metadata.format.fill_masks or mask):
        encoding["fill_value"] = metadata.fill_value
    return encoding


def _lengths(grid: ChunkGrid) -> Chunks:
    """Return the chunk lengths: one an axis, or all of them where they differ."""
    return tuple(map(axis_lengths, grid.axes))


def _codec_encoding(metadata: ArrayMetadata) -> dict[str, Any]:
    if not metadata.format.has_codecs:
        return _numcodecs_encoding(metadata)
    codecs = metadata.codecs if metadata.shard is None else metadata.shard.codec.codecs
    try:
        encoding: dict[str, Any] = {
            "compressors": _documents(codecs, Kind.BYTES_BYTES),
            "filters": _documents(codecs, Kind.ARRAY_ARRAY),
        }
        serializers = _documents(codecs, Kind.ARRAY_BYTES)
    except UnsupportedError:
        return {}  # codecs of numcodecs in a draft of v3: a writer chooses the default
    if metadata.format.has_serializer and serializers:
        encoding["serializer"] = serializers[0]
    return encoding


def _documents(codecs: tuple[Codec, ...], kind: Kind) -> tuple[dict[str, Any], ...]:
    return tuple(codec.to_json() for codec in codecs if codec.kind is kind)


def _numcodecs_encoding(metadata: ArrayMetadata) -> dict[str, Any]:
    import numcodecs

    try:
        _, filters, compressor = render_codecs(metadata)
    except UnsupportedError:
        return {}  # a codec that numcodecs does not have: a writer chooses its default
    return {
        "compressors": () if compressor is None else (numcodecs.get_codec(compressor),),
        "filters": tuple(numcodecs.get_codec(config) for config in filters),
    }
