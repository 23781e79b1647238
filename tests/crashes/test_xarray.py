"""The modes of xarray's writer, each with a mishap at each of its store operations."""

import numpy as np
import pytest
import xarray as xr

from tests.crashes.matrix import CORE_AND_STRESS, Verb, check
from tests.crashes.stores import RemoteStore, ScriptedStore
from zarrdask.xarray import open_zarr, to_zarr

pytestmark = pytest.mark.filterwarnings("ignore:.*was interrupted")


def days(count, start=0):
    """Return some days of a dataset; the first variable has Dask blocks, the others are small."""
    numbers = np.arange(start, start + count)
    temperature = xr.DataArray(numbers * 10.0 + 1, dims="time").chunk(2)
    return xr.Dataset(
        {"t": temperature, "n": ("time", numbers + 5)}, {"time": numbers}, {"title": "days"}
    )


OLD, NEW = days(3), days(3, 3)


def dataset(store):
    """Return a dataset as a reader finds it, or why it can't be opened; None if there is none."""
    try:
        return open_zarr(store, "g", chunks=None).load().to_dict()
    except FileNotFoundError:
        return None
    except ValueError as error:
        return str(error)


def is_mixed(seen):
    """Whether each value is that of the old dataset or of the new one."""
    new = NEW.to_dict()["data_vars"]
    return seen is not None and all(
        {*variable["data"]} <= {*new[name]["data"], *OLD.to_dict()["data_vars"][name]["data"]}
        for name, variable in seen["data_vars"].items()
    )


def is_smaller(seen):
    """Whether the variables are some of those of the old dataset, as they were."""
    old = OLD.to_dict()
    return all(seen[kind].items() <= old[kind].items() for kind in ("coords", "data_vars"))


def verbs(zarr_format):
    """Return the rows of the matrix for a format."""

    def write(obj=OLD, **options):
        return lambda store: to_zarr(obj, store, group="g", **options)

    before = write(zarr_format=zarr_format)
    values = NEW.drop_vars("time")
    return {
        # Consolidated metadata are written when the dataset is there.
        "w-": Verb(
            write(zarr_format=zarr_format),
            dataset,
            derived=frozenset({"zarr.json", ".zmetadata"}),
        ),
        "w": Verb(write(mode="w", zarr_format=zarr_format), dataset),
        "w over": Verb(
            write(NEW, mode="w", zarr_format=zarr_format),
            dataset,
            before,
            allows=lambda seen: seen is None or is_smaller(seen),
        ),
        "a new variable": Verb(
            write(NEW[["t"]].drop_vars("time").rename(t="m"), mode="a"), dataset, before
        ),
        "a": Verb(write(values, mode="a"), dataset, before, allows=is_mixed),
        "r+": Verb(write(values, mode="r+"), dataset, before, allows=is_mixed),
        "append_dim": Verb(write(NEW, append_dim="time"), dataset, before),
        "append_dim, not consolidated": Verb(
            write(NEW, append_dim="time", consolidated=False),
            dataset,
            write(zarr_format=zarr_format, consolidated=False),
            # Shapes are stored one after another: until the last, the dataset can't be opened.
            allows=lambda seen: "conflicting sizes for dimension 'time'" in seen,
        ),
        "region": Verb(
            write(values.isel(time=slice(1, 3)), region={"time": slice(1, 3)}),
            dataset,
            before,
            allows=is_mixed,
        ),
    }


@pytest.mark.parametrize(("zarr_format", "kind"), [(2, RemoteStore), (3, ScriptedStore)])
@pytest.mark.parametrize("mode", verbs(3))
@pytest.mark.parametrize("mishaps", CORE_AND_STRESS)
def test_an_interrupted_write_leaves_the_old_dataset_or_the_new_one(
    mishaps, mode, zarr_format, kind
):
    check(verbs(zarr_format)[mode], kind, mishaps)
