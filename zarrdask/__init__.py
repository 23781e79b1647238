"""Zarr arrays for Dask: read, write and rewrite chunked arrays in parallel.

The names below are the public interface. Errors are in `zarrdask.errors` and stores in
`zarrdask.storage`. Extensions derive from the classes in `zarrdask.codecs`, `zarrdask.dtypes`,
`zarrdask.grids` and `zarrdask.storage`, and `zarrdask.register` makes them known.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zarrdask import codecs as codecs
    from zarrdask import conventions as conventions
    from zarrdask import dtypes as dtypes
    from zarrdask import errors as errors
    from zarrdask import grids as grids
    from zarrdask import register as register
    from zarrdask import storage as storage
    from zarrdask import testing as testing
    from zarrdask.dtypes.fill_values import NO_FILL_VALUE
    from zarrdask.errors import ZarrdaskError
    from zarrdask.graph.append import append
    from zarrdask.graph.map_overlap import map_overlap
    from zarrdask.graph.plan_read import plan_read
    from zarrdask.graph.plan_write import plan_write
    from zarrdask.graph.read import from_zarr
    from zarrdask.graph.write import to_zarr
    from zarrdask.nodes.array import Array
    from zarrdask.nodes.create import create_array
    from zarrdask.nodes.group import Group
    from zarrdask.nodes.many import read_many
    from zarrdask.nodes.open import open_array
    from zarrdask.nodes.open_group import consolidate_metadata, create_group, open, open_group
    from zarrdask.pyramids.pyramid import pyramid
    from zarrdask.pyramids.update import update_pyramid
    from zarrdask.rewrite.copy import copy
    from zarrdask.rewrite.rechunk import rechunk
    from zarrdask.rewrite.rechunked import rechunked
    from zarrdask.rewrite.upgrade import upgrade
    from zarrdask.verification.compare import compare
    from zarrdask.verification.inventory import inventory
    from zarrdask.verification.verify import verify

__version__ = "0.1.0.dev0"

# The modules of the names above are imported when a name is first used: the package then loads in
# milliseconds, and a process that only opens arrays never imports Dask.
_MODULES = {
    "Array": "nodes.array",
    "Group": "nodes.group",
    "NO_FILL_VALUE": "dtypes.fill_values",
    "ZarrdaskError": "errors",
    "append": "graph.append",
    "compare": "verification.compare",
    "consolidate_metadata": "nodes.open_group",
    "copy": "rewrite.copy",
    "create_array": "nodes.create",
    "create_group": "nodes.open_group",
    "from_zarr": "graph.read",
    "inventory": "verification.inventory",
    "map_overlap": "graph.map_overlap",
    "open": "nodes.open_group",
    "open_array": "nodes.open",
    "open_group": "nodes.open_group",
    "plan_read": "graph.plan_read",
    "plan_write": "graph.plan_write",
    "pyramid": "pyramids.pyramid",
    "read_many": "nodes.many",
    "rechunk": "rewrite.rechunk",
    "rechunked": "rewrite.rechunked",
    "to_zarr": "graph.write",
    "update_pyramid": "pyramids.update",
    "upgrade": "rewrite.upgrade",
    "verify": "verification.verify",
}
_SUBMODULES = frozenset(
    {
        *("codecs", "conventions", "dtypes", "errors", "grids", "register", "storage", "testing"),
        "xarray",
    }
)

__all__ = [
    "NO_FILL_VALUE",
    "Array",
    "Group",
    "ZarrdaskError",
    "__version__",
    "append",
    "compare",
    "consolidate_metadata",
    "copy",
    "create_array",
    "create_group",
    "from_zarr",
    "inventory",
    "map_overlap",
    "open",
    "open_array",
    "open_group",
    "plan_read",
    "plan_write",
    "pyramid",
    "read_many",
    "rechunk",
    "rechunked",
    "to_zarr",
    "update_pyramid",
    "upgrade",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"zarrdask.{name}")
    if name not in _MODULES:
        # Imported here: xarray imports this package in every process that lists its engines.
        from zarrdask.errors import no_name
        from zarrdask.other_names import MODULE, STORAGE

        raise no_name(__name__, name, STORAGE | MODULE)
    value = getattr(import_module(f"zarrdask.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBMODULES})
