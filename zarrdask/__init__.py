"""Zarr arrays for Dask: read, write and rewrite chunked arrays in parallel.

The names below are the public interface. Errors are in `zarrdask.errors` and stores in
`zarrdask.storage`. Extensions derive from the classes in `zarrdask.formats.codecs`, `.dtypes`
and `.grids` and in `zarrdask.storage`, and `zarrdask.register` makes them known.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zarrdask import errors as errors
    from zarrdask import register as register
    from zarrdask import storage as storage
    from zarrdask import testing as testing
    from zarrdask.arrays.nodes.array import Array
    from zarrdask.arrays.nodes.concatenations.concat import concat, stack
    from zarrdask.arrays.nodes.create import create_array
    from zarrdask.arrays.nodes.group import Group
    from zarrdask.arrays.nodes.many import read_many
    from zarrdask.arrays.nodes.open import open_array
    from zarrdask.arrays.nodes.open_group import (
        consolidate_metadata,
        create_group,
        open,
        open_group,
    )
    from zarrdask.arrays.samples.batches import batches
    from zarrdask.errors import ZarrdaskError
    from zarrdask.formats import codecs as codecs
    from zarrdask.formats import dtypes as dtypes
    from zarrdask.formats import grids as grids
    from zarrdask.formats.dtypes.fill_values import NO_FILL_VALUE
    from zarrdask.parallel.execution.measured import measured
    from zarrdask.parallel.graph.append import append
    from zarrdask.parallel.graph.from_zarr import from_zarr
    from zarrdask.parallel.graph.map_overlap import map_overlap
    from zarrdask.parallel.graph.plan_read import plan_read
    from zarrdask.parallel.graph.plan_write import plan_write
    from zarrdask.parallel.graph.points.sample import sample
    from zarrdask.parallel.graph.to_zarr import to_zarr
    from zarrdask.parallel.rewrite.copy import copy
    from zarrdask.parallel.rewrite.rechunk import rechunk
    from zarrdask.parallel.rewrite.rechunked import rechunked
    from zarrdask.parallel.rewrite.upgrade import upgrade
    from zarrdask.tools import conventions as conventions
    from zarrdask.tools.pyramids.pyramid import pyramid
    from zarrdask.tools.pyramids.update import update_pyramid
    from zarrdask.tools.synchronization.sync import sync
    from zarrdask.tools.verification.compare import compare
    from zarrdask.tools.verification.inventory import inventory
    from zarrdask.tools.verification.node_manifest import manifest
    from zarrdask.tools.verification.verify import verify

__version__ = "0.1.0rc1"

# The modules of the names above are imported when a name is first used: the package then loads in
# milliseconds, and a process that only opens arrays never imports Dask.
_MODULES = {
    "Array": "arrays.nodes.array",
    "Group": "arrays.nodes.group",
    "NO_FILL_VALUE": "formats.dtypes.fill_values",
    "ZarrdaskError": "errors",
    "append": "parallel.graph.append",
    "batches": "arrays.samples.batches",
    "compare": "tools.verification.compare",
    "concat": "arrays.nodes.concatenations.concat",
    "consolidate_metadata": "arrays.nodes.open_group",
    "copy": "parallel.rewrite.copy",
    "create_array": "arrays.nodes.create",
    "create_group": "arrays.nodes.open_group",
    "from_zarr": "parallel.graph.from_zarr",
    "inventory": "tools.verification.inventory",
    "manifest": "tools.verification.node_manifest",
    "map_overlap": "parallel.graph.map_overlap",
    "measured": "parallel.execution.measured",
    "open": "arrays.nodes.open_group",
    "open_array": "arrays.nodes.open",
    "open_group": "arrays.nodes.open_group",
    "plan_read": "parallel.graph.plan_read",
    "plan_write": "parallel.graph.plan_write",
    "pyramid": "tools.pyramids.pyramid",
    "read_many": "arrays.nodes.many",
    "rechunk": "parallel.rewrite.rechunk",
    "rechunked": "parallel.rewrite.rechunked",
    "sample": "parallel.graph.points.sample",
    "stack": "arrays.nodes.concatenations.concat",
    "sync": "tools.synchronization.sync",
    "to_zarr": "parallel.graph.to_zarr",
    "update_pyramid": "tools.pyramids.update",
    "upgrade": "parallel.rewrite.upgrade",
    "verify": "tools.verification.verify",
}
_SUBMODULES = {
    "codecs": "formats.codecs",
    "conventions": "tools.conventions",
    "dtypes": "formats.dtypes",
    "errors": "errors",
    "grids": "formats.grids",
    "register": "register",
    "storage": "storage",
    "testing": "testing",
    "xarray": "xarray",
}

__all__ = [
    "NO_FILL_VALUE",
    "Array",
    "Group",
    "ZarrdaskError",
    "__version__",
    "append",
    "batches",
    "compare",
    "concat",
    "consolidate_metadata",
    "copy",
    "create_array",
    "create_group",
    "from_zarr",
    "inventory",
    "manifest",
    "map_overlap",
    "measured",
    "open",
    "open_array",
    "open_group",
    "plan_read",
    "plan_write",
    "pyramid",
    "read_many",
    "rechunk",
    "rechunked",
    "sample",
    "stack",
    "sync",
    "to_zarr",
    "update_pyramid",
    "upgrade",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"zarrdask.{_SUBMODULES[name]}")
    if name not in _MODULES:
        # Imported here: xarray imports this package in every process that lists its engines.
        from zarrdask.display.other_names import MODULE, STORAGE
        from zarrdask.errors import no_name

        raise no_name(__name__, name, STORAGE | MODULE)
    value = getattr(import_module(f"zarrdask.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBMODULES})
