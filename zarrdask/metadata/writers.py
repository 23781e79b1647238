"""Codec configurations of v2 that GDAL and netCDF-C write, and numcodecs rejects or misreads."""

from collections.abc import Callable

from zarrdask.codecs.base import Json
from zarrdask.compliance import report_deviation

#: The members of a .zarray in the order in which netCDF-C writes them. No other known writer has
#: this order.
_NETCDF_ORDER = [
    *("zarr_format", "shape", "dtype", "chunks", "fill_value", "order", "compressor", "filters")
]
_SHUFFLES = {"NONE": 0, "BYTE": 1, "BIT": 2, "0": 0, "1": 1, "2": 2}


def is_netcdf(document: Json, attributes: Json) -> bool:
    """Return whether netCDF-C wrote an array.

    Its own members in the document or the attributes begin with ``_nczarr`` or ``_NCZARR``. In its
    mode for plain Zarr there are none, and only the order of the members reveals it.
    """
    own_keys = any(name.lower().startswith("_nczarr") for name in (*document, *attributes))
    return own_keys or list(document)[: len(_NETCDF_ORDER)] == _NETCDF_ORDER


def _blosc(config: Json) -> Json:
    # GDAL up to 3.6 writes its creation option here. Decoding does not need it: each chunk of
    # Blosc has its own header.
    shuffle = config.get("shuffle")
    if not isinstance(shuffle, str) or shuffle not in _SHUFFLES:
        return config
    report_deviation(
        "A-57",
        "a name stands for the number of a shuffle",
        key="blosc.shuffle",
        found=shuffle,
        expected="a number",
    )
    return {**config, "shuffle": _SHUFFLES[shuffle]}


def _lzma(config: Json) -> Json:
    # GDAL names the filter that it used with LZMA. Decoding does not need it, as it is in the
    # header of each chunk, too.
    if "delta" not in config:
        return config
    report_deviation("A-58", "a member is unknown", key="codec lzma", found="delta")
    return {name: value for name, value in config.items() if name != "delta"}


def sized_shuffle(config: Json, itemsize: int) -> Json:
    """Return a shuffle configuration of netCDF-C with its element size filled in.

    In netCDF-C 4.9 and later, a size of zero means the size of the data type, as in HDF5. In
    numcodecs it means that nothing is shuffled, which would silently return wrong values.

    Parameters
    ----------
    config : dict
        The configuration of any codec, with its ``id``.
    itemsize : int
        The size of the elements that the codec encodes, in bytes.

    Raises
    ------
    MetadataError
        If the size is zero, in strict mode.
    """
    if config["id"] != "shuffle" or config.get("elementsize") != 0:
        return config
    report_deviation(
        "A-61",
        "the size of the elements is missing",
        key="shuffle.elementsize",
        found=0,
        expected=f"{itemsize}, for this type",
    )
    return {**config, "elementsize": itemsize}


_WRITERS: dict[str, Callable[[Json], Json]] = {"blosc": _blosc, "lzma": _lzma}


def normalise_codec(config: Json) -> Json:
    """Return a codec configuration of another writer in the form that numcodecs understands.

    Parameters
    ----------
    config : dict
        The configuration, with its ``id``.

    Raises
    ------
    MetadataError
        If the configuration deviates from numcodecs' form, in strict mode.
    """
    normalise = _WRITERS.get(config["id"])
    return config if normalise is None else normalise(config)
