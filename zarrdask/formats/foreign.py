"""Codec configurations of v2 that GDAL and netCDF-C write, and numcodecs refuses or misreads."""

from collections.abc import Callable

from zarrdask.codecs.base import Json
from zarrdask.tolerance import tolerate

_SHUFFLES = {"NONE": 0, "BYTE": 1, "BIT": 2, "0": 0, "1": 1, "2": 2}


def _blosc(config: Json, itemsize: int) -> Json:
    # GDAL up to 3.6 copies its creation option; the chunks say for themselves what they are.
    found = config.get("shuffle")
    if not isinstance(found, str) or found not in _SHUFFLES:
        return config
    tolerate("A-57", "a name", key="blosc.shuffle", found=found, expected="a number")
    return {**config, "shuffle": _SHUFFLES[found]}


def _lzma(config: Json, itemsize: int) -> Json:
    # GDAL tells of the filter that it put before LZMA; the chunks do, too.
    if "delta" not in config:
        return config
    tolerate("A-58", "an unknown member", key="codec lzma", found="delta")
    return {name: value for name, value in config.items() if name != "delta"}


def _shuffle(config: Json, itemsize: int) -> Json:
    # netCDF-C 4.9 and later: as in HDF5, zero is the size of the elements. To numcodecs it means
    # that nothing is shuffled, which would silently give wrong values.
    if config.get("elementsize") != 0:
        return config
    tolerate(
        "A-61", "no size", key="shuffle.elementsize", found=0, expected=f"{itemsize}, for this type"
    )
    return {**config, "elementsize": itemsize}


_WRITERS: dict[str, Callable[[Json, int], Json]] = {
    "blosc": _blosc,
    "lzma": _lzma,
    "shuffle": _shuffle,
}


def understood(config: Json, itemsize: int) -> Json:
    """Return a configuration as its writer meant it.

    Parameters
    ----------
    config : dict
        With its ``id``.
    itemsize : int
        Of the elements that the codec is given when it encodes.

    Raises
    ------
    MetadataError
        If it has to be understood otherwise than it is written, in strict mode.
    """
    mend = _WRITERS.get(config["id"])
    return config if mend is None else mend(config, itemsize)
