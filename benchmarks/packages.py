"""The packages of the contestants: which are installed, in which release."""

from importlib.metadata import PackageNotFoundError, version

#: A part of a contestant's name -> the package that it needs.
NEEDS = {
    "zarrista": "zarrista",
    "zarr": "zarr",
    "p2p": "zarr",
    "zarrs": "zarrs",
    "obstore": "obstore",
    "tensorstore": "tensorstore",
    "cubed": "cubed",
    "xarray": "xarray",
    "topozarr": "topozarr",
    "ngff-zarr": "ngff-zarr",
    "ome-zarr-py": "ome-zarr",
}


def missing(tool: str) -> list[str]:
    """Return the packages that a contestant needs and that are not installed."""
    return [NEEDS[part] for part in tool.split("+") if part in NEEDS and not release(NEEDS[part])]


def release(package: str) -> str | None:
    """Return the version of an installed package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
