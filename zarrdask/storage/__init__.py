"""Stores: bytes by key.

A store can be passed wherever a URL can. A store class of your own derives from `Store` and should
pass the tests of `zarrdask.testing.StoreContract`.

This room imports `zarrdask.formats` and the rooms below it, and no Dask. The other rooms take
`Store` (`base`), `open_store` (`resolve`), views of hierarchies of Zarr (`zarr`), manifests
(`snapshots`) and locks (`locks`).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from zarrdask.display.other_names import STORAGE
from zarrdask.errors import no_name

if TYPE_CHECKING:
    from zarrdask.formats.metadata.storage_transformers import StorageTransformer
    from zarrdask.formats.store_keys import check_key, check_prefix
    from zarrdask.storage.adapters.for_zarr_python import as_zarr_python
    from zarrdask.storage.adapters.saved_fork import SavedFork
    from zarrdask.storage.base import Store
    from zarrdask.storage.capabilities import LOCAL_COSTS, REMOTE_COSTS, Capabilities, StoreCosts
    from zarrdask.storage.listing import value_sizes
    from zarrdask.storage.local.local_store import LocalStore
    from zarrdask.storage.memory import MemoryStore
    from zarrdask.storage.partial_access import StoreWithPartialAccess, set_partial_values
    from zarrdask.storage.references.reference_store import ReferenceStore
    from zarrdask.storage.remote.fsspec.fsspec_store import FsspecStore
    from zarrdask.storage.remote.obstore.obstore_store import ObstoreStore
    from zarrdask.storage.wrapper import WrappedStore
    from zarrdask.storage.zip.store import ZipStore

_MODULES = {
    "Capabilities": "storage.capabilities",
    "FsspecStore": "storage.remote.fsspec.fsspec_store",
    "LOCAL_COSTS": "storage.capabilities",
    "LocalStore": "storage.local.local_store",
    "MemoryStore": "storage.memory",
    "ObstoreStore": "storage.remote.obstore.obstore_store",
    "REMOTE_COSTS": "storage.capabilities",
    "ReferenceStore": "storage.references.reference_store",
    "SavedFork": "storage.adapters.saved_fork",
    "StorageTransformer": "formats.metadata.storage_transformers",
    "Store": "storage.base",
    "StoreCosts": "storage.capabilities",
    "StoreWithPartialAccess": "storage.partial_access",
    "WrappedStore": "storage.wrapper",
    "ZipStore": "storage.zip.store",
    "as_zarr_python": "storage.adapters.for_zarr_python",
    "check_key": "formats.store_keys",
    "check_prefix": "formats.store_keys",
    "set_partial_values": "storage.partial_access",
    "value_sizes": "storage.listing",
}

__all__ = [
    "LOCAL_COSTS",
    "REMOTE_COSTS",
    "Capabilities",
    "FsspecStore",
    "LocalStore",
    "MemoryStore",
    "ObstoreStore",
    "ReferenceStore",
    "SavedFork",
    "StorageTransformer",
    "Store",
    "StoreCosts",
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
    return getattr(import_module(f"zarrdask.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
