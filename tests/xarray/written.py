"""Datasets that were written."""

from zarrdask.xarray import open_zarr


def loaded(place, **options):
    with open_zarr(place, **options) as found:
        return found.load()
