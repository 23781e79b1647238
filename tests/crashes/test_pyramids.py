"""The verbs that write pyramids, each with a mishap at each of its store operations."""

import numpy as np
import pytest

import zarrdask
from tests.crashes.matrix import CORE_AND_STRESS, Verb, check
from tests.crashes.stores import RemoteStore, ScriptedStore
from tests.crashes.test_rewrites import nodes
from zarrdask.arrays.hierarchy.changes import journal

OPTIONS = {"levels": 2, "factors": [2], "method": "nearest", "convention": "geozarr"}
VALUES = np.arange(1, 5)


def image(store):
    """Store an array of which a pyramid is made."""
    root = zarrdask.create_group(store)
    root.create_array("0", shape=4, dtype="i8", chunks=2, compressors=())[...] = VALUES


def pyramid(store):
    zarrdask.pyramid(zarrdask.open_group(store)["0"], store, **OPTIONS).execute(
        "sync", progress=False
    )


def longer(store):
    """Store a pyramid whose level 0 has become longer."""
    image(store)
    pyramid(store)
    zarrdask.open_array(store, "0", mode="r+").append(VALUES)


def update(store):
    zarrdask.update_pyramid(store, scheduler="sync").execute("sync", progress=False)


def with_windows(store):
    """Store a pyramid in a new group, with the windows of brightness in its attributes."""
    details = {"axes": "cyx", "omero": {"channels": [{"color": "FF0000"}]}}
    plan = zarrdask.pyramid(IMAGE, store, levels=2, **details)
    plan.execute("sync", progress=False)


IMAGE = zarrdask.create_array({}, shape=(1, 4, 4), dtype="u1", chunks=(1, 4, 4), compressors=())
IMAGE[...] = np.arange(16).reshape(1, 4, 4)


def has(**levels):
    """Return whether a reader sees these values at the beginning of levels, and others later."""
    return lambda seen: all(seen[path][: len(values)] == values for path, values in levels.items())


def is_part(seen):
    """Return whether the levels of the image that a reader sees are complete."""
    levels = {"0": IMAGE[...].tolist(), "1": [[[2, 4], [10, 12]]]}
    return seen is None or {**seen, "": None}.items() <= {"": None, **levels}.items()


#: Levels appear one by one, before the attributes that describe them.
VERBS = {
    "pyramid": Verb(pyramid, nodes, image, allows=has(**{"0": [1, 2, 3, 4]})),
    "pyramid with windows": Verb(with_windows, nodes, allows=is_part),
    "update_pyramid": Verb(
        update, nodes, longer, allows=has(**{"0": [1, 2, 3, 4] * 2, "1": [2, 4]})
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", [RemoteStore, ScriptedStore])
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("mishaps", CORE_AND_STRESS)
def test_an_interrupted_verb_ends_as_if_nothing_had_happened(mishaps, verb, kind, monkeypatch):
    monkeypatch.setattr(journal, "WRITE_INTERVAL", 0)
    check(VERBS[verb], kind, mishaps)
