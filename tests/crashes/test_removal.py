"""The verbs that erase or replace groups, each with a mishap at each of its store operations."""

import numpy as np
import pytest

import zarrdask
from tests.crashes.matrix import Verb, check
from tests.crashes.stores import RemoteStore, ScriptedStore
from tests.crashes.test_rewrites import nodes

VALUES = np.arange(1, 7).reshape(3, 2)
OPTIONS = {"shape": VALUES.shape, "dtype": "i8", "chunks": (2, 2), "compressors": ()}


def verbs(zarr_format):
    """Return the rows of the matrix for a format."""

    def create_group(store, path, **options):
        return zarrdask.create_group(store, path, zarr_format=zarr_format, **options)

    def before(store):
        create_group(store, "", attributes={"title": "t"})
        group = create_group(store, "g", attributes={"title": "old"})
        for name in ("a", "b/c", "b/d/e"):
            group.create_array(name, **OPTIONS, attributes={"units": "m"})[...] = VALUES
        store.set("g/notes.txt", b"what else is in the directory of the group")
        if zarr_format in (2, 3):
            for path in ("g/b", ""):
                zarrdask.consolidate_metadata(store, path)

    def delete(store):
        del zarrdask.open_group(store, mode="r+")["g"]

    complete = ScriptedStore()
    before(complete)
    # Attributes of v2 are erased before the document that makes a group.
    allowed = [*nodes(complete).items(), ("g", {})]

    def is_smaller(seen):
        return all(item in allowed for item in seen.items())

    return {
        "del": Verb(delete, nodes, before, allows=is_smaller),
        "create_group overwrite": Verb(
            lambda store: create_group(store, "g", attributes={"title": "new"}, overwrite=True),
            nodes,
            before,
            allows=is_smaller,
        ),
        "create_array overwrite": Verb(
            lambda store: zarrdask.create_array(
                store, "g", **OPTIONS, zarr_format=zarr_format, overwrite=True
            ),
            nodes,
            before,
            allows=is_smaller,
        ),
    }


@pytest.mark.parametrize(
    ("zarr_format", "kind"), [(2, RemoteStore), (3, ScriptedStore), ("v3-draft", RemoteStore)]
)
@pytest.mark.parametrize("verb", verbs(3))
def test_an_interrupted_removal_leaves_a_smaller_group_that_is_removed_in_the_same_way(
    verb, zarr_format, kind
):
    check(verbs(zarr_format)[verb], kind)
