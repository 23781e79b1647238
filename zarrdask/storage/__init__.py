"""Stores: bytes by key.

A store can be passed wherever a URL can. A store class of your own derives from `Store` and should
pass the tests of `zarrdask.testing.StoreContract`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zarrdask.storage.base import Store
    from zarrdask.storage.for_zarr_python import as_zarr_python
    from zarrdask.storage.fsspec import FsspecStore
    from zarrdask.storage.local import LocalStore
    from zarrdask.storage.memory import MemoryStore
    from zarrdask.storage.obstore import ObstoreStore
    from zarrdask.storage.references import ReferenceStore
    from zarrdask.storage.zip.store import ZipStore

_MODULES = {
    "FsspecStore": "fsspec",
    "LocalStore": "local",
    "MemoryStore": "memory",
    "ObstoreStore": "obstore",
    "ReferenceStore": "references",
    "Store": "base",
    "ZipStore": "zip.store",
    "as_zarr_python": "for_zarr_python",
}

__all__ = [
    "FsspecStore",
    "LocalStore",
    "MemoryStore",
    "ObstoreStore",
    "ReferenceStore",
    "Store",
    "ZipStore",
    "as_zarr_python",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'zarrdask.storage' has no attribute {name!r}")
    return getattr(import_module(f"zarrdask.storage.{_MODULES[name]}"), name)
