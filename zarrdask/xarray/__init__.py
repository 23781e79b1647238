"""xarray on zarrdask: an engine for ``xarray.open_dataset``, a chunk manager, and a writer.

Importing this package registers the accessor ``zarrdask``: ``ds.zarrdask.to_zarr(...)``.

This package needs xarray (``pip install "zarrdask[xarray]"``); nothing else in zarrdask does.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from zarrdask.xarray.accessor import register

if TYPE_CHECKING:
    from zarrdask.xarray.engine import ZarrdaskBackendEntrypoint
    from zarrdask.xarray.manager import ZarrdaskManager
    from zarrdask.xarray.opening import open_mfdataset, open_zarr
    from zarrdask.xarray.writer import to_zarr

# Loaded on first use: xarray loads the engine in every process that lists engines.
_HOMES = {
    "ZarrdaskBackendEntrypoint": "engine",
    "ZarrdaskManager": "manager",
    "open_mfdataset": "opening",
    "open_zarr": "opening",
    "to_zarr": "writer",
}

__all__ = ["ZarrdaskBackendEntrypoint", "ZarrdaskManager", "open_mfdataset", "open_zarr", "to_zarr"]


register()


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        hint = '; use that of xarray with engine="zarrdask"' if name.startswith("open_") else ""
        raise AttributeError(f"module 'zarrdask.xarray' has no attribute {name!r}{hint}", name=name)
    member = getattr(import_module(f"zarrdask.xarray.{_HOMES[name]}"), name)
    globals()[name] = member
    return member


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
