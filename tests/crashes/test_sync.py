"""`sync`, with a mishap at each of its store operations."""

import numpy as np
import pytest

import zarrdask
from tests.crashes.matrix import CORE_AND_STRESS, FOREIGN, Verb, check
from tests.crashes.stores import RemoteStore, ScriptedStore
from tests.crashes.test_rewrites import nodes

OLD = np.arange(1, 7).reshape(3, 2)
OPTIONS = {"dtype": "i8", "chunks": (2, 2), "compressors": ()}


def copies(zarr_format):
    """Return the values of an old copy and of the source, whose arrays have changed each way."""
    stores = [zarrdask.storage.MemoryStore() for _ in range(2)]
    for number, store in enumerate(stores):
        root = zarrdask.create_group(store, zarr_format=zarr_format, attributes={"number": number})

        def add(path, values, root=root, **options):
            root.create_array(path, **{**OPTIONS, "shape": values.shape} | options)[...] = values

        add("same", OLD)
        add("grown", np.arange(1, 11).reshape(5, 2) if number else OLD)
        add("g/smaller", OLD[:1] if number else OLD)
        add("encoded", OLD, chunks=(3, 2) if number else (2, 2))
        add("labelled", OLD, attributes={"number": number})
        add("added" if number else "removed", OLD)
        zarrdask.consolidate_metadata(store)
    return [dict(store.values) for store in stores]


def verb(zarr_format, *, delete):
    """Return the row of the matrix for a format."""
    old, new = copies(zarr_format)
    if delete:
        new |= FOREIGN  # else these are what the source lacks
    states = [nodes(zarrdask.storage.MemoryStore(dict(each))) for each in (old, new)]

    def is_mixed(seen):
        """Whether each array is one of the old copy or of the source, or missing."""
        return seen is None or all(
            any(path in state and state[path] == value for state in states)
            for path, value in seen.items()
        )

    return Verb(
        lambda store: zarrdask.sync(dict(new), store, delete=delete),
        nodes,
        lambda store: store.values.update(old),
        allows=is_mixed,
        derived=frozenset({".zmetadata", "zarr.json"}),
    )


@pytest.mark.slow
@pytest.mark.parametrize("mishaps", CORE_AND_STRESS)
@pytest.mark.parametrize(("zarr_format", "kind"), [(2, RemoteStore), (3, ScriptedStore)])
@pytest.mark.parametrize("delete", [False, True])
def test_an_interrupted_sync_leaves_each_array_old_or_new(zarr_format, kind, delete, mishaps):
    check(verb(zarr_format, delete=delete), kind, mishaps)
