"""Zarr arrays for Dask: each task reads, decodes or writes whole stored chunks."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zarrdask.api import consolidate_metadata, plan_write
    from zarrdask.array import Array
    from zarrdask.dtypes.fill import NO_FILL_VALUE
    from zarrdask.errors import (
        ChecksumError,
        CodecError,
        LinkError,
        MetadataError,
        NodeExistsError,
        NodeNotFoundError,
        NodeTypeError,
        ReadOnlyError,
        SelectionError,
        StoreError,
        TruncatedError,
        UnsupportedError,
        ZarrdaskError,
    )
    from zarrdask.extend import (
        register_chunk_grid,
        register_chunk_key_encoding,
        register_codec,
        register_data_type,
        register_extension,
        register_storage_transformer,
    )
    from zarrdask.graph.append import append
    from zarrdask.graph.copy import copy
    from zarrdask.graph.read import from_zarr
    from zarrdask.graph.rechunk import rechunk
    from zarrdask.graph.verify import verify
    from zarrdask.graph.write import store, to_zarr
    from zarrdask.group import Group, create_group, open, open_group
    from zarrdask.opening import create_array, open_array
    from zarrdask.storage.local import LocalStore
    from zarrdask.storage.memory import MemoryStore
    from zarrdask.tolerance import ToleranceWarning

__version__ = "0.1.0"

# Loaded when first asked for: to look into a store must not cost the import of Dask.
_HOMES = {
    "Array": "array",
    "ChecksumError": "errors",
    "CodecError": "errors",
    "Group": "group",
    "LinkError": "errors",
    "LocalStore": "storage.local",
    "MemoryStore": "storage.memory",
    "MetadataError": "errors",
    "NO_FILL_VALUE": "dtypes.fill",
    "NodeExistsError": "errors",
    "NodeNotFoundError": "errors",
    "NodeTypeError": "errors",
    "ReadOnlyError": "errors",
    "SelectionError": "errors",
    "StoreError": "errors",
    "ToleranceWarning": "tolerance",
    "TruncatedError": "errors",
    "UnsupportedError": "errors",
    "ZarrdaskError": "errors",
    "append": "graph.append",
    "consolidate_metadata": "api",
    "copy": "graph.copy",
    "create_array": "opening",
    "create_group": "group",
    "from_zarr": "graph.read",
    "open": "group",
    "open_array": "opening",
    "open_group": "group",
    "plan_write": "api",
    "rechunk": "graph.rechunk",
    "register_chunk_grid": "extend",
    "register_chunk_key_encoding": "extend",
    "register_codec": "extend",
    "register_data_type": "extend",
    "register_extension": "extend",
    "register_storage_transformer": "extend",
    "store": "graph.write",
    "to_zarr": "graph.write",
    "verify": "graph.verify",
}

__all__ = [
    "NO_FILL_VALUE",
    "Array",
    "ChecksumError",
    "CodecError",
    "Group",
    "LinkError",
    "LocalStore",
    "MemoryStore",
    "MetadataError",
    "NodeExistsError",
    "NodeNotFoundError",
    "NodeTypeError",
    "ReadOnlyError",
    "SelectionError",
    "StoreError",
    "ToleranceWarning",
    "TruncatedError",
    "UnsupportedError",
    "ZarrdaskError",
    "append",
    "consolidate_metadata",
    "copy",
    "create_array",
    "create_group",
    "from_zarr",
    "open",
    "open_array",
    "open_group",
    "plan_write",
    "rechunk",
    "register_chunk_grid",
    "register_chunk_key_encoding",
    "register_codec",
    "register_data_type",
    "register_extension",
    "register_storage_transformer",
    "store",
    "to_zarr",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'zarrdask' has no attribute {name!r}")
    found = getattr(import_module(f"zarrdask.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
