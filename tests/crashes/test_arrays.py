"""The verbs of arrays, each with a mishap at each of its store operations."""

import warnings

import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.crashes.matrix import CORE_AND_STRESS, Verb, check
from tests.crashes.stores import RemoteStore, ScriptedStore
from zarrdask.arrays.chunks import presence, unfinished
from zarrdask.errors import NodeNotFoundError

OLD, NEW = np.arange(1, 7).reshape(3, 2), np.arange(101, 107).reshape(3, 2)
BLOCKS = da.from_array(NEW, chunks=(2, 2))
MARKER = f"g/a/{unfinished.NAME}"
OPTIONS = {"chunks": (2, 2), "attributes": {"units": "m"}, "compressors": ()}


def opened(store):
    return zarrdask.open_array(store, "g/a", mode="r+")


def values(store):
    """Return the values and the attributes of the array, and a warning, as a reader sees them."""
    try:
        array = opened(store)
    except NodeNotFoundError:
        return None
    # The reader is another process than the one before.
    presence.FOUND.clear()
    unfinished.WARNED.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        seen = array[...].tolist(), dict(array.attrs)
    return (*seen, *(str(each.message) for each in caught))


def members(store):
    """Return the consolidated metadata of a group, if there are any."""
    return [(path, node.metadata) for path, node in zarrdask.open_group(store).walk()]


def is_among(*allowed):
    """Return whether each element of an array that a reader sees is one of some values."""
    elements = np.concatenate([*map(np.ravel, allowed)])
    return lambda seen: seen is not None and bool(np.isin(seen[0], elements).all())


def verbs(zarr_format):
    """Return the rows of the matrix for a format."""
    options = {**OPTIONS, "zarr_format": zarr_format}

    def create(store, **others):
        shape = {"shape": OLD.shape, "dtype": "i8"}
        return zarrdask.create_array(store, "g/a", **shape, **options, **others)

    def before(store):
        zarrdask.create_group(store, attributes={"title": "t"}, zarr_format=zarr_format)
        create(store)[...] = OLD
        zarrdask.consolidate_metadata(store)

    def write(store, **others):
        zarrdask.to_zarr(BLOCKS, store, "g/a", **options, **others)

    def is_partly_new(seen):
        """Whether a reader sees fill values instead of what is missing, and is warned."""
        return is_among(NEW, [0])(seen) and "an unfinished write is here" in seen[2]

    is_mixed = is_among(NEW, OLD)
    return {
        "create_array": Verb(create, values),
        "create_array overwrite": Verb(
            lambda store: create(store, overwrite=True, fill_value=7),
            values,
            before,
            allows=lambda seen: seen is None,
        ),
        "to_zarr": Verb(
            write,
            values,
            allows=is_partly_new,
            derived=frozenset({MARKER}),  # is erased when all chunks are stored
            again=lambda store: write(store, overwrite=True),
        ),
        "to_zarr last": Verb(lambda store: write(store, commit="last"), values),
        "to_zarr resume": Verb(lambda store: write(store, resume=True), values),
        "to_zarr overwrite": Verb(
            lambda store: write(store, overwrite=True),
            values,
            before,
            allows=lambda seen: seen is None or is_partly_new(seen),
            derived=frozenset({MARKER}),
        ),
        "to_zarr overwrite last": Verb(
            lambda store: write(store, overwrite=True, commit="last"),
            values,
            before,
            allows=lambda seen: seen is None,
        ),
        "to_zarr region": Verb(
            lambda store: zarrdask.to_zarr(BLOCKS[1:], store, "g/a", region=np.s_[1:]),
            values,
            before,
            allows=is_mixed,
        ),
        "set": Verb(
            lambda store: opened(store).__setitem__(np.s_[1:], NEW[1:]),
            values,
            before,
            allows=is_mixed,
        ),
        "erase": Verb(
            lambda store: opened(store).erase(np.s_[1:]),
            values,
            before,
            allows=is_among(OLD, [0]),
        ),
        "append": Verb(lambda store: zarrdask.append(BLOCKS, store, "g/a"), values, before),
        "append along columns": Verb(
            lambda store: zarrdask.append(BLOCKS, store, "g/a", axis=1), values, before
        ),
        "Array.append": Verb(lambda store: opened(store).append(NEW), values, before),
        "resize larger": Verb(lambda store: opened(store).resize((6, 2)), values, before),
        "resize smaller": Verb(
            lambda store: opened(store).resize((1, 2)), values, before, allows=is_among(OLD, [0])
        ),
        "attributes": Verb(lambda store: opened(store).attrs.update(units="km"), values, before),
        "consolidate": Verb(zarrdask.consolidate_metadata, members, before),
    }


@pytest.mark.parametrize(("zarr_format", "kind"), [(2, RemoteStore), (3, ScriptedStore)])
@pytest.mark.parametrize("verb", verbs(3))
@pytest.mark.parametrize("mishaps", CORE_AND_STRESS)
def test_an_interrupted_verb_leaves_the_old_state_or_the_new_one(mishaps, verb, zarr_format, kind):
    check(verbs(zarr_format)[verb], kind, mishaps)
