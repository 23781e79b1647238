"""Variables of xarray -> values and metadata of the arrays that store them.

xarray encodes the values (CF's times, masks, scales, text); this module turns the result and the
variable's ``encoding`` into the options of a new array. A setting that cannot be obeyed is an
error, but for what a variable *inherits* from the store that it was read from: keys that mean
nothing in Zarr, chunks of another number of axes, and codecs of another format are dropped.
"""

from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import cache, partial
from inspect import signature
from typing import Any

import numpy as np
from xarray import Variable
from xarray.backends.zarr import encode_zarr_attr_value, encode_zarr_variable

from zarrdask.arrays.chunks.cast import check_numpy_dtype
from zarrdask.display.words import did_you_mean
from zarrdask.errors import MetadataError, UnsupportedError, ZarrdaskError
from zarrdask.formats.dtypes.cf_fill_values import FILL_VALUE, encode_fill_value
from zarrdask.formats.indexing.selection import is_integer
from zarrdask.formats.metadata.array_options import ArrayOptions
from zarrdask.formats.metadata.format import Format
from zarrdask.formats.metadata.json import MAX_DEPTH
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.formats.metadata.new_metadata import plan_array
from zarrdask.parallel.graph.placement import chunk_options
from zarrdask.xarray.ambiguous import unambiguous
from zarrdask.xarray.conventions import check_packing
from zarrdask.xarray.packing import encode_checked
from zarrdask.xarray.writing.request import ArgumentTypeError, WriteSettings
from zarrdask.xarray.xarray_private import vlen_dtype

#: Keys of an encoding that describe where a variable came from.
_ORIGIN = frozenset({"source", "original_shape", "preferred_chunks"})
#: Keys of an encoding that describe how an array is stored.
_STORAGE = frozenset(
    {
        *("chunks", "shards", "grid", "codecs", "compressors", "filters", "serializer"),
        *("chunk_key_encoding", "write_empty_chunks", "cache_metadata"),
    }
)


def encode_values(variable: Variable, name: Hashable, form: Format) -> Variable:
    """Return a variable with its values encoded by the rules of CF."""
    check_numpy_dtype(variable.dtype, f"variable {name!r}")
    if not isinstance(variable.dtype, np.dtype):
        raise UnsupportedError(
            "this data type of pandas can't be stored; convert the variable, by .astype(float) or "
            ".astype(str) for example",
            key=f"variable {name!r}",
            found=str(variable.dtype),
            expected="a data type of NumPy",
        )
    if variable.dtype.kind in "mM" and variable.chunks is not None and not variable.size:
        # xarray chooses other units for times without elements in a Dask array than in memory.
        empty = variable.copy(deep=False, data=np.empty(variable.shape, variable.dtype))
        return encode_values(empty, name, form).chunk(variable.chunksizes)
    _check_numbers(variable, f"variable {name!r}: encoding: ")
    variable = unambiguous(variable, name)
    text, chosen = np.dtypes.StringDType(), variable.encoding.get("dtype")
    is_text = variable.dtype.kind in "UO" and getattr(chosen, "kind", "") == "T"
    if is_text or (variable.dtype.kind == "T" and variable.dtype == text):
        # NumPy's texts of any length are stored as objects are that are texts: they may get longer.
        # Texts with missing values are left to xarray.
        variable = variable.copy(data=variable.data.astype(vlen_dtype(str)))
        variable.encoding = {k: v for k, v in variable.encoding.items() if k != "dtype"}
    try:
        encode = partial(encode_zarr_variable, name=name, **_conventions(form))
        return encode_checked(variable, name, encode)
    except Exception as error:
        error.add_note(f"while encoding the variable {name!r}")
        raise


def _check_numbers(variable: Variable, within: str) -> None:
    """Check the values of an encoding that must be numbers."""
    check_packing(variable.encoding, within)
    for key in ("_FillValue", "missing_value"):
        value = variable.encoding.get(key)
        if isinstance(value, str | dict) and variable.dtype.kind in "biufc":
            raise MetadataError(
                "this must be a number, as the values are numbers",
                key=f"{within}{key}",
                found=value,
                expected="a number, or None",
            )


#: The keys of an encoding by which xarray encodes values, whatever the format.
_CF = ("_FillValue", "add_offset", "calendar", "dtype", "missing_value", "scale_factor", "units")


@cache
def _conventions(form: Format) -> dict[str, Any]:
    """Return the option of newer releases of xarray for the format whose conventions hold."""
    if "zarr_format" not in signature(encode_zarr_variable).parameters:
        return {}
    return {"zarr_format": 2 if form.fill_masks else 3}


def encode_attributes(attributes: Mapping[Any, Any]) -> dict[str, Any]:
    """Return attributes as JSON has them."""
    encoded = {}
    for name, value in attributes.items():
        plain = encode_zarr_attr_value(value)
        if not isinstance(name, str) or not _is_json(plain, MAX_DEPTH):
            raise ArgumentTypeError(
                "Invalid attribute in Dataset.attrs or in a variable's attrs: it cannot be "
                "stored as JSON; convert it to text, numbers, or lists of these, or remove it",
                key=str(name),
                found=value,
            )
        encoded[name] = plain
    return encoded


def _is_json(value: Any, levels: int) -> bool:
    """Whether a value can be stored as JSON, in up to a number of levels of lists and mappings."""
    if isinstance(value, Mapping | list | tuple) and levels <= 0:
        return False
    if isinstance(value, Mapping):
        return all(isinstance(k, str) and _is_json(v, levels - 1) for k, v in value.items())
    if isinstance(value, list | tuple):
        return all(_is_json(each, levels - 1) for each in value)
    return value is None or isinstance(value, str | bool | int | float)


# --------------------------------------------------------------------------------------------
# New arrays


def write_empty_chunks(
    encoding: Mapping[str, Any], settings: WriteSettings, name: Hashable
) -> bool | None:
    """Return whether chunks that hold only the fill value are stored; None: as configured."""
    own, common = encoding.get("write_empty_chunks"), settings.write_empty_chunks
    if own is not None and common is not None and bool(own) != bool(common):
        raise MetadataError(
            'Differing "write_empty_chunks" values in encoding and parameters: give it once',
            key=str(name),
            found=f"{own} in the encoding",
            expected=f"{common}",
        )
    return common if own is None else bool(own)


def plan_variable(
    variable: Variable, name: str, settings: WriteSettings, *, explicit: bool
) -> ArrayMetadata:
    """Return the metadata of the new array that stores an encoded variable.

    If the variable's encoding was given for this write, it is `explicit`, and what cannot be obeyed
    raises an error; otherwise the encoding is inherited.
    """
    storage = _storage_options(variable, name, settings, explicit=explicit)
    base = _base_options(variable, settings)
    try:
        return _plan(variable, base, storage, settings)
    except ZarrdaskError as error:
        native = {} if explicit else _without_foreign_codecs(storage, settings)
        if explicit or native == storage:
            raise error.within(f"variable {name!r}") from error.__cause__
    return _plan(variable, base, native, settings)


def _plan(
    variable: Variable, base: dict[str, Any], storage: Mapping[str, Any], settings: WriteSettings
) -> ArrayMetadata:
    options = base | _chunks(variable, storage, settings) | _codecs(storage, settings)
    metadata = plan_array(ArrayOptions(**options))
    # Where a fill value masks elements, there must be none unless one is given.
    if not metadata.format.fill_masks or options["fill_value"] is not None:
        return metadata
    if not metadata.format.optional_fill:
        raise UnsupportedError(
            "an array of this format has a fill value, which would mask elements; give _FillValue "
            "in the encoding, or write Zarr v2 or v3",
            key="zarr_format",
            found=metadata.zarr_format,
        )
    return replace(metadata, fill_value=None)


def _without_foreign_codecs(storage: Mapping[str, Any], settings: WriteSettings) -> dict[str, Any]:
    """Return an inherited encoding without what only the other format, or dtype, can have."""
    foreign, is_numcodecs = {"serializer"}, settings.format.uses_numcodecs
    for key in ("compressors", "filters"):
        if any(_is_numcodecs(codec) is not is_numcodecs for codec in _items(storage.get(key))):
            foreign.add(key)
    if not settings.format.has_free_shards:
        foreign |= {"shards", "chunk_key_encoding"}
    return {key: value for key, value in storage.items() if key not in foreign}


def _is_numcodecs(codec: Any) -> bool:
    """Whether a codec is given as numcodecs, and so v2, has it."""
    return hasattr(codec, "get_config") or (isinstance(codec, Mapping) and "id" in codec)


def _storage_options(
    variable: Variable, name: str, settings: WriteSettings, *, explicit: bool
) -> dict[str, Any]:
    """Return the part of an encoding that concerns storage; no other is allowed if explicit."""
    encoding = {k: v for k, v in variable.encoding.items() if k not in _ORIGIN}
    if encoding.get(FILL_VALUE, 0) is None:
        del encoding[FILL_VALUE]  # "no fill value": that has been obeyed
    valid = _STORAGE if settings.format.fill_masks else _STORAGE | {"fill_value"}
    unknown = [key for key in encoding if key not in valid]
    if explicit and unknown:
        hint = did_you_mean(str(unknown[0]), sorted(valid))
        if "fill_value" in unknown:
            hint = "; in Zarr v2, _FillValue sets the fill value of the array"
        raise MetadataError(
            f"unexpected encoding parameters for zarr backend: {unknown!r}{hint}",
            key=f"variable {name!r}",
            expected=f"keys among {', '.join(sorted({*valid, *_CF}))}",
        )
    storage = {key: value for key, value in encoding.items() if key in valid}
    chunks = storage.get("chunks")
    # An encoding survives operations that drop axes: chunks of other axes say nothing.
    if not explicit and isinstance(chunks, list | tuple) and len(chunks) != variable.ndim:
        storage |= {"chunks": None, "shards": None}
    return storage


def _base_options(variable: Variable, settings: WriteSettings) -> dict[str, Any]:
    """Return the options that do not depend on chunks and codecs."""
    attributes = dict(variable.attrs)
    if settings.format.fill_masks:
        fill = attributes.pop(FILL_VALUE, None)
    else:
        fill = variable.encoding.get("fill_value")
        if fill is None and variable.dtype.kind == "f":
            fill = np.nan  # xarray's choice: elements that were never written are missing
        if (mask := attributes.pop(FILL_VALUE, None)) is not None:
            attributes[FILL_VALUE] = encode_fill_value(mask, variable.dtype)
    return {
        "shape": variable.shape,
        "dtype": _data_type(variable.dtype),
        "fill_value": fill,
        "dimension_names": tuple(map(str, variable.dims)),
        "attributes": encode_attributes(attributes),
        "zarr_format": settings.format.version,
    }


def _data_type(dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "O":
        members: Mapping[str, Any] = dtype.metadata or {}
        element = members.get("element_type")
        return bytes if element is bytes else object
    return dtype


def _chunks(
    variable: Variable, storage: Mapping[str, Any], settings: WriteSettings
) -> dict[str, Any]:
    """Return the options for the chunks of a new array."""
    grid = storage.get("grid", settings.grid)
    chunks, shards = storage.get("chunks"), storage.get("shards")
    chunks, shards = _lengths(chunks, variable.ndim), _lengths(shards, variable.ndim)
    options: dict[str, Any] = {} if shards is None else {"shards": shards}
    if isinstance(chunks, Mapping) or isinstance(shards, Mapping):
        blocks = variable.chunks or tuple((size,) for size in variable.shape)
        options["dimension_names"] = tuple(map(str, variable.dims))
        options |= {} if chunks is None else {"chunks": chunks}
        return chunk_options(blocks, "regular", options)
    if chunks is not None:
        # An axis of length 0 has chunks of length 1.
        positive = tuple(n or 1 for n in chunks) if isinstance(chunks, tuple) else chunks
        return options | {"chunks": positive}
    if variable.chunks is None:
        return options | ({} if grid in ("regular", "rectilinear") else {"grid": grid})
    return options | chunk_options(variable.chunks, grid, {})


def _lengths(chunks: Any, ndim: int) -> Any:
    """Return chunk lengths, one for each axis, or what else stands for chunks."""
    if is_integer(chunks):
        return (int(chunks),) * ndim
    if not isinstance(chunks, list | tuple):
        return chunks
    for length in chunks:
        if not (is_integer(length) or isinstance(length, list | tuple)):
            raise ArgumentTypeError(
                "zarr chunk sizes specified in the encoding must be an int or a tuple of ints",
                key="chunks",
                found=chunks,
            )
    return tuple(chunks)


def _codecs(storage: Mapping[str, Any], settings: WriteSettings) -> dict[str, Any]:
    """Return the options for the codecs of a new array."""
    options: dict[str, Any] = {}
    if "codecs" in storage:
        options["codecs"] = storage["codecs"]
    for key in ("compressors", "filters"):
        value = storage.get(key, "auto")
        if not isinstance(value, str) or value != "auto":
            options[key] = _items(value)
    serializer = storage.get("serializer", "auto")
    if serializer is not None and serializer != "auto":
        if not settings.format.has_serializer:
            raise UnsupportedError("only Zarr v3 has a serializer", key="serializer")
        options["filters"] = (*options.get("filters", ()), serializer)
    keys = storage.get("chunk_key_encoding")
    if keys is not None:
        options["chunk_key_encoding"] = _key_encoding(keys)
    return options


def _items(value: Any) -> tuple[Any, ...]:
    if value is None:
        return ()
    items = value if isinstance(value, list | tuple) else (value,)
    return tuple(items)


def _key_encoding(keys: Any) -> Any:
    """Return a chunk key encoding as its document, also from zarr-python's shorter form."""
    keys = keys.to_dict() if hasattr(keys, "to_dict") else keys
    if isinstance(keys, Mapping) and "separator" in keys:
        return {"name": keys["name"], "configuration": {"separator": keys["separator"]}}
    return keys
