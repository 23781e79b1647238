"""The verbs that create and rewrite groups, each with a mishap at each of its store operations."""

import numpy as np
import pytest

import zarrdask
from tests.crashes.matrix import CORE_AND_STRESS, Verb, check
from tests.crashes.stores import RemoteStore, ScriptedStore
from zarrdask.arrays.hierarchy.changes import journal
from zarrdask.errors import NodeNotFoundError
from zarrdask.parallel.rewrite.copying import copy_tasks

VALUES = np.arange(1, 7).reshape(3, 2)
OPTIONS = {"shape": VALUES.shape, "dtype": "i8", "chunks": (2, 2), "compressors": ()}


def source(zarr_format):
    """Return a group with two arrays."""
    root = zarrdask.create_group({}, zarr_format=zarr_format, attributes={"title": "t"})
    for name in ("a", "b/c"):
        root.create_array(name, **OPTIONS)[...] = VALUES
    zarrdask.consolidate_metadata(root)
    return zarrdask.open_group(root.store)


def nodes(store):
    """Return the nodes that a reader sees, with the values of arrays and the attributes of groups.

    The result is None if there is no group.
    """
    try:
        root = zarrdask.open_group(store)
    except NodeNotFoundError:
        return None
    return {
        path: node[...].tolist() if isinstance(node, zarrdask.Array) else dict(node.attrs)
        for path, node in [("", root), *root.walk()]
    }


def verbs(zarr_format):
    """Return the rows of the matrix for a format."""
    root = source(zarr_format)
    complete = nodes(root.store)

    def is_part(seen):
        return seen is None or seen.items() <= complete.items()

    def copy(store, **options):
        zarrdask.copy(root, store, scheduler="sync", **options)

    def rechunk(store, **options):
        plan = zarrdask.rechunk(root, store, chunks=(1, 2), max_mem="1 MB")
        plan.execute("sync", progress=False, **options)

    return {
        "copy": Verb(copy, nodes, allows=is_part),
        "copy restart": Verb(
            copy, nodes, allows=is_part, again=lambda store: copy(store, restart=True)
        ),
        "rechunk": Verb(rechunk, nodes, allows=is_part),
        "rechunk restart": Verb(
            rechunk, nodes, allows=is_part, again=lambda store: rechunk(store, restart=True)
        ),
        "create_group": Verb(
            lambda store: zarrdask.create_group(store, "g/h", zarr_format=zarr_format),
            nodes,
            allows=lambda seen: "g/h" not in seen,
        ),
    }


#: The record is stored after each task, or only when the rewrite begins and ends.
@pytest.mark.parametrize(
    ("zarr_format", "kind", "interval"), [(2, RemoteStore, 0), (3, ScriptedStore, 1000)]
)
@pytest.mark.parametrize("verb", verbs(3))
@pytest.mark.parametrize("mishaps", CORE_AND_STRESS)
def test_an_interrupted_rewrite_ends_as_if_nothing_had_happened(
    mishaps, verb, zarr_format, kind, interval, monkeypatch
):
    monkeypatch.setattr(copy_tasks, "TASK_UNITS", 1)
    monkeypatch.setattr(journal, "WRITE_INTERVAL", interval)
    check(verbs(zarr_format)[verb], kind, mishaps)
