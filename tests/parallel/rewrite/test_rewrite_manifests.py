"""The setting `zarrdask.manifests`: arrays that are copied or rewritten get a manifest."""

import dask
import numpy as np
import pytest

import zarrdask
from tests.covering import for_each


@pytest.fixture(autouse=True)
def on(setting):
    setting({"zarrdask.manifests": True, "scheduler": "sync"})


def are_kept(place):
    """Check the manifests of all arrays of a group; return their paths."""
    arrays = {path: each for path, each in zarrdask.open(place).walk() if hasattr(each, "chunks")}
    for path, array in arrays.items():
        assert zarrdask.verify(array, manifest=True).ok, path
    return [*arrays]


def make(place, zarr_format=3):
    with dask.config.set({"zarrdask.manifests": False}):
        group = zarrdask.create_group(place, zarr_format=zarr_format)
        for name in ("a", "g/b"):
            array = group.create_array(name, shape=(8, 8), chunks=(4, 3), dtype="u1")
            array[...] = np.arange(64).reshape(8, 8)
    return group


@for_each(
    "zarr_format, options",
    [
        (2, {}),
        (3, {"chunks": (3, 8)}),
        ("v3-draft", {"compressors": "gzip"}),
        (3, {"shards": (8, 6)}),
    ],
)
@pytest.mark.slow
def test_a_copy_has_manifests(tmp_path, zarr_format, options):
    place = tmp_path / f"{zarr_format}{[*options]}"
    zarrdask.copy(make({}), place / "b", zarr_format=zarr_format, **options)
    assert are_kept(place / "b") == ["a", "g/b"]
    if "shards" in options:
        zarrdask.copy(place / "b", place / "c", shards=False)  # The chunks are taken out of shards.
        assert are_kept(place / "c") == ["a", "g/b"]


@for_each("is_group", [True, False])
@pytest.mark.slow
def test_a_rechunked_array_has_a_manifest(tmp_path, is_group):
    place, source = tmp_path / f"{is_group}", make({})
    for n, limit in enumerate(("256 MiB", "200 B")):
        target = place / f"{n}"
        node = source if is_group else source["a"]
        options = {"temp": place / "temporary", "max_mem": limit}
        zarrdask.rechunk(node, target, chunks=(8, 2), **options).execute(progress=False)
        if is_group:
            assert are_kept(target) == ["a", "g/b"]
        else:
            assert zarrdask.verify(target, manifest=True).ok


@pytest.mark.slow
def test_the_levels_of_a_pyramid_have_manifests_that_updates_keep(tmp_path):
    plan = zarrdask.pyramid(make({})["a"], tmp_path, levels=3)
    group = plan.execute(progress=False)
    assert are_kept(tmp_path) == ["0", "1", "2"]
    group["0"][:2, :2] = 99
    zarrdask.update_pyramid(group).execute(progress=False)
    assert are_kept(tmp_path) == ["0", "1", "2"]
    assert group["2"][0, 0] > 20


@pytest.mark.slow
def test_an_update_that_shrinks_levels_keeps_their_manifests(tmp_path):
    group = zarrdask.pyramid(make({})["a"], tmp_path, levels=2, chunks=2).execute(progress=False)
    for length in (4, 3):  # Chunks of levels are erased, and then a part of one.
        group["0"].resize((length, 8))
        zarrdask.update_pyramid(group).execute(progress=False)
        assert are_kept(tmp_path) == sorted(group)


def test_without_the_setting_no_manifest_is_stored(setting, tmp_path):
    setting({"zarrdask.manifests": False})
    zarrdask.copy(make({}), tmp_path / "b")
    assert not [*tmp_path.rglob(".zarrdask-manifest")]


@pytest.mark.slow
def test_tasks_of_a_cluster_return_the_digests(client, tmp_path):
    source = make(tmp_path / "a")
    zarrdask.copy(source, tmp_path / "b", scheduler=client)
    zarrdask.rechunk(source, tmp_path / "c", chunks=(8, 2)).execute(client, progress=False)
    zarrdask.pyramid(source["a"], tmp_path / "d").execute(client, progress=False)
    for name in "bcd":
        assert are_kept(tmp_path / name)
