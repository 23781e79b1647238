"""Packages that have codecs which zarrdask does not have, for the errors of unknown codecs."""

from zarrdask.formats.extension import find_package

#: By the id of a codec in numcodecs, or by the beginning of the id: packages that have it.
_OF_NUMCODECS = {
    "FITSAscii": "kerchunk",
    "FITSVarBintable": "kerchunk",
    "fill_hdf_strings": "kerchunk",
    "grib": "kerchunk",
    "gribscan.": "gribscan",
    "imagecodecs_": "imagecodecs-numcodecs",
    "pcodec": "zarrdask[pcodec]",
    "rawgrib": "gribscan",
    "record_member": "kerchunk",
    "wavpack": "wavpack-numcodecs",
    "zfpy": "zarrdask[zfp]",
}
#: By the name of a codec in v3, or by the beginning of the name: packages that add it to
#: zarr-python.
_OF_ZARR_PYTHON = {
    "any-numcodecs.": "zarr-any-numcodecs",
    "cft_zarr.": "cft-zarr",
    "gribberish": "gribberish",
    **dict.fromkeys(
        ("hcc-dct", "hcc-decompose", "hcc-grad-dct", "hcc-grad-dwt"), "healpix-compress"
    ),
    **dict.fromkeys(("hcc-sentinel2", "hcc-sentinel2-pyramid"), "healpix-compress"),
    "htj2k": "nd-image-codecs",
    "imagecodecs_": "imagecodecs-zarr",
    "nd_lift": "nd-image-codecs",
    "nd_zfp": "nd-image-codecs",
    "omfiles.": "omfiles",
    "virtual_tiff.": "virtual-tiff",
    "vlen-ndarray": "zarr-vlen-ndarray",
}


def of_numcodecs(name: str) -> str | None:
    """Return the command that installs a codec of numcodecs, or None if no package is known.

    >>> of_numcodecs("imagecodecs_jpeg"), of_numcodecs("lzw")
    ("pip install 'imagecodecs-numcodecs'", None)
    """
    package = find_package(name, _OF_NUMCODECS)
    return None if package is None else f"pip install '{package}'"


def of_zarr_python(name: str) -> str | None:
    """Return which package has a codec of v3 for zarr-python, or None if none is known."""
    package = find_package(name, _OF_ZARR_PYTHON)
    if package is None:
        return None
    adds = "a codec that zarrdask.register.codec adds"
    return f"{adds}; zarr-python reads it with the package {package}"
