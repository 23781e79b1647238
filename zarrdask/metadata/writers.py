"""Codec configurations of v2 that GDAL and netCDF-C write, and numcodecs refuses or misreads."""

from collections.abc import Callable

from zarrdask.codecs.base import Json
from zarrdask.compliance import report_deviation

#: The members of a .zarray in the order in which netCDF-C writes them; no other writer is known
#: to have the same.
_NETCDF_ORDER = [
    *("zarr_format", "shape", "dtype", "chunks", "fill_value", "order", "compressor", "filters")
]
_SHUFFLES = {"NONE": 0, "BYTE": 1, "BIT": 2, "0": 0, "1": 1, "2": 2}


def is_netcdf(document: Json, attributes: Json) -> bool:
    """Return whether netCDF-C wrote an array, with or without its own keys.

    With them, the name of one begins with ``_nczarr`` or ``_NCZARR``, in the document or in the
    attributes. In its mode for plain Zarr, only the order of the members tells.
    """
    own_keys = any(name.lower().startswith("_nczarr") for name in (*document, *attributes))
    return own_keys or list(document)[: len(_NETCDF_ORDER)] == _NETCDF_ORDER


def _blosc(config: Json) -> Json:
    # GDAL up to 3.6 copies its creation option; the chunks say for themselves what they are.
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
    # GDAL tells of the filter that it put before LZMA; the chunks do, too.
    if "delta" not in config:
        return config
    report_deviation("A-58", "a member is unknown", key="codec lzma", found="delta")
    return {name: value for name, value in config.items() if name != "delta"}


def sized_shuffle(config: Json, itemsize: int) -> Json:
    """Return a configuration of netCDF-C with the size of the elements that a shuffle is given.

    To netCDF-C 4.9 and later, a size of zero means that of the elements, as in HDF5. To numcodecs
    it means that nothing is shuffled, which would silently give wrong values.

    Parameters
    ----------
    config : dict
        With its ``id``.
    itemsize : int
        The size of the elements that the codec is given when it encodes.

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
    """Return a configuration as its writer meant it.

    Parameters
    ----------
    config : dict
        With its ``id``.

    Raises
    ------
    MetadataError
        If it has to be understood otherwise than it is written, in strict mode.
    """
    normalise = _WRITERS.get(config["id"])
    return config if normalise is None else normalise(config)
