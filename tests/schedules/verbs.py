"""The rows of the harness: verbs that write, each as a function of a store and the writer's number.

The two writers store different values with the same metadata, so that their documents are equal.
"""

from functools import cache

import dask.array as da
import numpy as np
import xarray as xr

import zarrdask
from tests.schedules.schedule import Verb
from zarrdask.errors import NodeNotFoundError, ZarrdaskError
from zarrdask.xarray import to_zarr as write_dataset

OPTIONS = {"chunks": 2, "compressors": ()}
OLD = [1, 1, 1, 1, 1]


def values(writer, length=5):
    """Return the values of a writer."""
    return np.full(length, 7 + writer)


def blocks(writer, length=5):
    """Return the values of a writer as a Dask array, whose name says which they are."""
    return da.from_array(values(writer, length), chunks=2, name=f"values-{writer}-{length}")


def nothing(store):
    """Store nothing."""


def an_array(store, **options):
    """Store a group with an array."""
    zarrdask.create_group(store, "g", attributes={"title": "t"})
    zarrdask.create_array(store, "g/a", shape=5, dtype="i8", **OPTIONS, **options)[...] = OLD
    zarrdask.consolidate_metadata(store, "g")


def a_pyramid(store):
    """Store a group with an array, and a level that is older than the values of the array."""
    zarrdask.create_group(store, "g", attributes={"title": "t"})
    array = zarrdask.create_array(store, "g/a", shape=5, dtype="i8", **OPTIONS)
    plan = zarrdask.pyramid(
        array, store, "g", levels=2, factors=[2], method="nearest", convention="geozarr"
    )
    plan.execute("sync", progress=False)
    array[...] = OLD
    zarrdask.consolidate_metadata(store, "g")


def leftovers(store):
    """Store chunks that a writer left that died."""
    store.values.update({f"g/a/c/{i}": b"left" for i in range(5)})


@cache
def source(writer):
    """Return a stored array, and the group that it is in."""
    root = zarrdask.create_group({})
    array = root.create_array("a", shape=5, dtype="i8", **OPTIONS)
    array[...] = values(writer)
    return array, zarrdask.open_group(root.store)


def opened(store):
    return zarrdask.open_array(store, "g/a", mode="r+")


# ---- creations


def create_array(store, writer):
    array = zarrdask.create_array(store, "g/a", shape=5, dtype="i8", **OPTIONS)
    array[...] = values(writer)


def to_zarr(**options):
    return lambda store, writer: zarrdask.to_zarr(
        blocks(writer), store, "g/a", **OPTIONS, **options
    )


def copy(store, writer):
    zarrdask.copy(source(writer)[0], store, "g/a", scheduler="sync")


def copy_group(store, writer):
    zarrdask.copy(source(writer)[1], store, "g", scheduler="sync")


def rechunk(store, writer):
    plan = zarrdask.rechunk(source(writer)[0], store, "g/a", chunks=(2,), max_mem="1 MB")
    plan.execute("sync", progress=False)


def dataset(store, writer):
    variable = xr.DataArray(values(writer), dims="x").chunk(2)
    write_dataset(
        xr.Dataset({"a": variable}), store, group="g", mode="w-",
        encoding={"a": {"chunks": 2, "compressors": ()}},
    )  # fmt: skip


def pyramid(store, writer):
    plan = zarrdask.pyramid(
        source(writer)[0], store, "g/a", levels=2, chunks=2, method="nearest", convention=None
    )
    plan.execute("sync", progress=False)


CREATIONS = {
    "create_array": Verb(create_array, nothing),
    "to_zarr": Verb(to_zarr(), nothing),
    'to_zarr(commit="last")': Verb(to_zarr(commit="last"), nothing),
    "to_zarr(resume=True)": Verb(to_zarr(resume=True), nothing),
    "copy of an array": Verb(copy, nothing),
    "copy of a group": Verb(copy_group, nothing),
    "rechunk": Verb(rechunk, nothing),
    "dataset": Verb(dataset, nothing),
    "pyramid": Verb(pyramid, nothing),
}

# ---- changes


def region(writer):
    """Return the region of a writer, which shares a chunk with that of the other one."""
    return np.s_[:3] if writer == 0 else np.s_[3:]


def assign(store, writer):
    opened(store)[region(writer)] = 7 + writer


def write_region(store, writer):
    zarrdask.to_zarr(blocks(writer, 3 - writer), store, "g/a", region=region(writer))


def erase(store, writer):
    opened(store).erase(region(writer))


def append(store, writer):
    zarrdask.append(blocks(writer, 3), store, "g/a")


def append_values(store, writer):
    opened(store).append(values(writer, 3))


def resize(store, writer):
    opened(store).resize(8 + writer)


def set_attribute(store, writer):
    opened(store).attrs[f"by-{writer}"] = writer


def set_group_attribute(store, writer):
    zarrdask.open_group(store, "g", mode="r+").attrs[f"by-{writer}"] = writer


def create_member(store, writer):
    zarrdask.create_array(store, f"g/b{writer}", shape=2, dtype="i8", **OPTIONS)[...] = 7 + writer


def delete_member(store, writer):
    del zarrdask.open_group(store, "g", mode="r+")["a"]


def consolidate(store, writer):
    zarrdask.consolidate_metadata(store, "g")


def update_pyramid(store, writer):
    zarrdask.update_pyramid(store, "g", scheduler="sync").execute("sync", progress=False)


def sync(store, writer):
    zarrdask.sync(source(writer)[1], zarrdask.open_group(store, "g", mode="r+"))


CHANGES = {
    "z[...] = x": Verb(assign, an_array),
    "to_zarr(region=)": Verb(write_region, an_array),
    "erase": Verb(erase, an_array),
    "append": Verb(append, an_array),
    "Array.append": Verb(append_values, an_array),
    "resize": Verb(resize, an_array),
    "attrs": Verb(set_attribute, an_array),
    "attrs of the group": Verb(set_group_attribute, an_array),
    "create_array beside": Verb(create_member, an_array),
    "del": Verb(delete_member, an_array, is_same=True),
    "consolidate_metadata": Verb(consolidate, an_array),
    "update_pyramid": Verb(update_pyramid, a_pyramid, is_same=True),
    "sync": Verb(sync, an_array),
}
#: Levels whose values follow those of the array at the next update.
LEVELS = ("1", "2")


def seen(store):
    """Return what a reader sees: values and attributes by path; and whether consolidated metadata
    says the same.
    """
    try:
        root = zarrdask.open_group(store, "g", consolidated=False)
    except NodeNotFoundError:
        return None
    except ZarrdaskError as error:
        return str(error)
    nodes = [("", root), *root.walk()]
    found = {path: described(node) for path, node in nodes if path not in LEVELS}
    shown = zarrdask.open_group(store, "g")
    told = {path: node.metadata for path, node in shown.walk()}
    true = {path: node.metadata for path, node in root.walk()}
    return found, told == true


def described(node):
    """Return what a node is."""
    attributes = dict(node.attrs)
    return (node[...].tolist(), attributes) if isinstance(node, zarrdask.Array) else attributes
