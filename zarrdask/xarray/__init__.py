"""xarray on zarrdask: an engine for ``xarray.open_dataset``, a chunk manager, and a writer.

Importing this package registers the accessor ``zarrdask``: ``ds.zarrdask.to_zarr(...)``.

This package needs xarray (``pip install "zarrdask[xarray]"``); nothing else in zarrdask does.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import xarray

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zarrdask.arrays.hierarchy.node_path import NodePath
    from zarrdask.parallel.plan.read_plan import ReadPlan
    from zarrdask.parallel.rewrite.group_plan import GroupPlan
    from zarrdask.parallel.rewrite.planning import RechunkOptions
    from zarrdask.xarray.engine import ZarrdaskBackendEntrypoint
    from zarrdask.xarray.manager import ZarrdaskManager
    from zarrdask.xarray.many_stores import open_many
    from zarrdask.xarray.opening import open_datatree, open_mfdataset, open_zarr
    from zarrdask.xarray.rewriting.dataset_pyramid import to_pyramid
    from zarrdask.xarray.writing.dataset_writer import to_zarr

# Loaded on first use: xarray loads the engine in every process that lists engines.
_HOMES = {
    "ZarrdaskBackendEntrypoint": "engine",
    "ZarrdaskManager": "manager",
    "open_datatree": "opening",
    "open_many": "many_stores",
    "open_mfdataset": "opening",
    "open_zarr": "opening",
    "to_pyramid": "rewriting.dataset_pyramid",
    "to_zarr": "writing.dataset_writer",
}

#: Names that users of `zarrdask.append` may look for here.
_APPEND = "to_zarr(..., append_dim=...) appends"

__all__ = [
    "ZarrdaskBackendEntrypoint",
    "ZarrdaskManager",
    "open_datatree",
    "open_many",
    "open_mfdataset",
    "open_zarr",
    "to_pyramid",
    "to_zarr",
]


class ZarrdaskAccessor:
    """The accessor ``ds.zarrdask`` of objects of xarray."""

    def __init__(self, obj: Any) -> None:
        self._obj = obj

    def load(self, **options: Any) -> Any:
        """Load the values of the object, all variables together, and return it.

        Does what the object's own method `load` does, with the same result, but the variables that
        were opened with zarrdask's engine and without Dask are read together: all requests are in
        flight at the same time, and all threads decode chunks.

        Parameters
        ----------
        **options
            As in `xarray.Dataset.load`: they are for variables with Dask arrays.
        """
        from zarrdask.xarray.loading import load

        return load(self._obj, **options)

    def compute(self, **options: Any) -> Any:
        """Return the object with all variables loaded; see `load`. The object itself stays lazy."""
        from zarrdask.xarray.loading import load

        return load(self._obj.copy(deep=False), **options)

    def to_zarr(self, store: Any, mode: str | None = None, **options: Any) -> Any:
        """Write the object to a Zarr group; see `zarrdask.xarray.to_zarr`."""
        # Imported here: the engine is loaded with this module, and needs no Dask.
        from zarrdask.xarray.writing.dataset_writer import to_zarr

        return to_zarr(self._obj, store, mode, **options)

    def to_pyramid(self, store: Any, **options: Any) -> Any:
        """Write the object at several resolutions; see `zarrdask.xarray.to_pyramid`."""
        from zarrdask.xarray.rewriting.dataset_pyramid import to_pyramid

        return to_pyramid(self._obj, store, **options)

    def rechunk(self, target: Any, **options: Any) -> "GroupPlan":
        """Plan to write the object with other chunks; see `zarrdask.rechunk`."""
        from zarrdask.parallel.rewrite.rechunk import rechunk

        plan: GroupPlan = rechunk(self._obj, target, **options)
        return plan

    def rechunked(
        self,
        chunks: "Mapping[Any, Any] | None" = None,
        *,
        temp: Any = None,
        max_mem: int | str = "256 MiB",
        temp_options: dict[str, Any] | None = None,
        **lengths: Any,
    ) -> Any:
        """Return the object with other blocks, which are not computed: see `zarrdask.rechunked`.

        Parameters
        ----------
        chunks : mapping, optional
            The lengths of blocks by dimension.
        temp, max_mem, temp_options
            As in `zarrdask.rechunked`.
        **lengths
            The lengths of blocks by dimension: ``ds.zarrdask.rechunked(time=-1, lat=10)``.
        """
        from zarrdask.xarray.rewriting.rechunked import rechunked_object

        options = {"temp": temp, "max_mem": max_mem, "temp_options": temp_options}
        return rechunked_object(self._obj, {**(chunks or {}), **lengths}, **options)

    def plan_read(self, region: "Mapping[Any, Any] | None" = None) -> "ReadPlan":
        """Plan to read all variables that zarrdask's engine opened; see `zarrdask.plan_read`.

        Coordinates that have been read already need no requests.

        Parameters
        ----------
        region : mapping, optional
            Integers and slices by dimension, as in `xarray.Dataset.isel`; by default all is read.
        """
        from zarrdask.parallel.graph.plan_read import plan_read
        from zarrdask.xarray.loading import as_dask_arrays

        obj = self._obj if region is None else self._obj.isel(region)
        plan: ReadPlan = plan_read(as_dask_arrays(obj))
        return plan

    def sample(self, points: Any, size: Any = 1, *, ends: Any = "pad") -> Any:
        """Return the cubes around points; see `zarrdask.sample`."""
        from zarrdask.xarray.sampling import sample

        return sample(self._obj, points, size, ends=ends)

    def plan_rechunk(self, target_node: "NodePath", options: "RechunkOptions") -> "GroupPlan":
        """Return the plan to write the object to a new group: what `zarrdask.rechunk` calls."""
        from zarrdask.xarray.rewriting.rechunk_dataset import plan_rechunk

        return plan_rechunk(self._obj, target_node, options)

    if not TYPE_CHECKING:  # For type checkers, every attribute would exist.

        def __getattr__(self, name: str) -> Any:
            from zarrdask.errors import no_attribute

            raise no_attribute(self, name, _APPEND if name == "append" else "")


for _kind, _register in (
    (xarray.Dataset, xarray.register_dataset_accessor),
    (xarray.DataArray, xarray.register_dataarray_accessor),
    (xarray.DataTree, xarray.register_datatree_accessor),
):
    if not hasattr(_kind, "zarrdask"):  # this module may be loaded again
        _register("zarrdask")(ZarrdaskAccessor)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        hint = '; use xarray\'s own with engine="zarrdask"' if name.startswith("open_") else ""
        hint = f"; {_APPEND}" if name == "append" else hint
        raise AttributeError(f"module 'zarrdask.xarray' has no attribute {name!r}{hint}", name=name)
    member = getattr(import_module(f"zarrdask.xarray.{_HOMES[name]}"), name)
    globals()[name] = member
    return member


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
