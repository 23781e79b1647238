"""Stores: bytes by key.

A store can be passed wherever a URL can. A store class of your own derives from `Store` and should
pass the tests of `zarrdask.testing.StoreContract`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from zarrdask.errors import no_name
from zarrdask.other_names import STORAGE

if TYPE_CHECKING:
    from zarrdask.storage.base import Store
    from zarrdask.storage.capabilities import Capabilities
    from zarrdask.storage.for_zarr_python import as_zarr_python
    from zarrdask.storage.fsspec import FsspecStore
    from zarrdask.storage.keys import check_key, check_prefix
    from zarrdask.storage.local import LocalStore
    from zarrdask.storage.memory import MemoryStore
    from zarrdask.storage.obstore import ObstoreStore
    from zarrdask.storage.partial_access import StoreWithPartialAccess, set_partial_values
    from zarrdask.storage.references import ReferenceStore
    from zarrdask.storage.saved_fork import SavedFork
    from zarrdask.storage.transformers import StorageTransformer
    from zarrdask.storage.upkeep import value_sizes
    from zarrdask.storage.wrapper import WrappedStore
    from zarrdask.storage.zip.store import ZipStore

_MODULES = {
    "Capabilities": "capabilities",
    "FsspecStore": "fsspec",
    "LocalStore": "local",
    "MemoryStore": "memory",
    "ObstoreStore": "obstore",
    "ReferenceStore": "references",
    "SavedFork": "saved_fork",
    "StorageTransformer": "transformers",
    "Store": "base",
    "StoreWithPartialAccess": "partial_access",
    "WrappedStore": "wrapper",
    "ZipStore": "zip.store",
    "as_zarr_python": "for_zarr_python",
    "check_key": "keys",
    "check_prefix": "keys",
    "set_partial_values": "partial_access",
    "value_sizes": "upkeep",
}

__all__ = [
    "Capabilities",
    "FsspecStore",
    "LocalStore",
    "MemoryStore",
    "ObstoreStore",
    "ReferenceStore",
    "SavedFork",
    "StorageTransformer",
    "Store",
    "StoreWithPartialAccess",
    "WrappedStore",
    "ZipStore",
    "as_zarr_python",
    "check_key",
    "check_prefix",
    "set_partial_values",
    "value_sizes",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise no_name(__name__, name, STORAGE)
    return getattr(import_module(f"zarrdask.storage.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
