"""``ds.zarrdask``: an accessor of datasets, data arrays and trees.

It is registered when `zarrdask.xarray` is imported.
"""

from typing import Any

import xarray


class ZarrdaskAccessor:
    """What zarrdask does with an object of xarray."""

    def __init__(self, obj: Any) -> None:
        self._obj = obj

    def to_zarr(self, store: Any, mode: str | None = None, **options: Any) -> Any:
        """Write the object to a Zarr group; see `zarrdask.xarray.to_zarr`."""
        # Imported here: the engine is loaded with this module, and needs no Dask.
        from zarrdask.xarray.writer import to_zarr

        return to_zarr(self._obj, store, mode, **options)


def register() -> None:
    """Make the accessor known, unless it is already."""
    for kind, decorate in (
        (xarray.Dataset, xarray.register_dataset_accessor),
        (xarray.DataArray, xarray.register_dataarray_accessor),
        (xarray.DataTree, xarray.register_datatree_accessor),
    ):
        if not hasattr(kind, "zarrdask"):
            decorate("zarrdask")(ZarrdaskAccessor)
