"""Settings, and the sizes that users write."""

import math
from contextlib import suppress

import dask
import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from zarrdask import config
from zarrdask.errors import MetadataError, ZarrdaskError

BAD = [
    ("block-size", "lots"),
    ("block-size", -1),
    ("block-size", "inf"),
    ("block-size", float("nan")),
    ("chunk-size", [1]),
    ("requests", 0),
    ("requests", 1.5),
    ("requests", "1 MiB"),
    ("requests", True),
    ("retries", -1),
    ("retry-delay", "-1 s"),
    ("requests-per-second", -1),
    ("requests-per-second", math.nan),
    ("requests-per-second", None),
    ("strict", "yes please"),
    ("strict", 2),
    ("threads", "many"),
    ("threads", 0),
    ("lock-directory", 7),
    ("shard-order", 7),
    ("missing", "zero"),
    ("forbidden", None),
]


@for_each(("name", "value"), BAD)
def test_a_bad_value_is_an_error_that_names_the_key(name, value):
    with dask.config.set({f"zarrdask.{name}": value}), pytest.raises(MetadataError) as caught:
        config.get(name)
    assert caught.value.key == f"zarrdask.{name}"
    assert isinstance(caught.value, ValueError)
    assert caught.value.expected


@for_each(
    ("name", "value", "expected"),
    [
        ("block-size", "1 MB", 1_000_000),
        ("block-size", 8, 8),
        ("retry-delay", 0.5, 0.5),
        ("threads", None, None),
        ("threads", 3, 3),
        ("strict", 1, True),
        ("strict", False, False),
        ("lock-directory", "/locks", "/locks"),
    ],
)
def test_good_values(name, value, expected):
    with dask.config.set({f"zarrdask.{name}": value}):
        assert config.get(name) == expected


def test_every_default_is_a_good_value():
    for name, default in config.DEFAULTS.items():
        with dask.config.set({f"zarrdask.{name}": default}):
            assert config.get(name) == default


NO_SIZES = ["1e400", "inf", "nan", "-1", "lots", math.inf, math.nan, -1, 2**63, 10**400, True]
NO_SIZES += [None, [1]]


@for_each(
    ("text", "size"),
    [
        (0, 0),
        (1.5e3, 1500),
        ("1e9", 10**9),
        ("256 MiB", 2**28),
        ("1 GB", 10**9),
        (np.int64(7), 7),
        (2**63 - 1, 2**63 - 1),
    ],
)
def test_a_size_is_a_number_or_a_text_with_a_unit(text, size):
    assert config.parse_size(text, "max_mem") == size
    with dask.config.set({"zarrdask.block-size": text}):
        assert config.get("block-size") == size


@for_each("value", NO_SIZES)
def test_what_is_no_size_is_an_error_that_names_the_option_or_the_setting(value):
    z = zarrdask.create_array({}, shape=(4, 4), dtype="f8", chunks=(1, 4))
    with pytest.raises(MetadataError, match="max_mem: invalid size in bytes") as caught:
        zarrdask.rechunk(z, {}, chunks=(4, 1), max_mem=value)
    assert len(str(caught.value)) < 500
    no_size = pytest.raises(MetadataError, match=r"zarrdask\.chunk-size: invalid size")
    with dask.config.set({"zarrdask.chunk-size": value}), no_size:
        zarrdask.create_array({}, shape=4, dtype="f8")


def test_a_setting_that_was_renamed_is_reported_with_its_name():
    renamed = pytest.warns(UserWarning, match="bundle-blocks: .* it is now zarrdask.fuse-blocks")
    with dask.config.set({"zarrdask.bundle-blocks": 1}), renamed:
        config.get("threads")


def test_a_setting_that_does_not_exist_is_reported_once():
    with dask.config.set({"zarrdask.blok-size": 1}):
        with pytest.warns(UserWarning, match="blok-size: .* did you mean zarrdask.block-size"):
            config.get("threads")
        assert config.get("block-size") == config.DEFAULTS["block-size"]


REPLACING = {
    "create_array": lambda s: zarrdask.create_array(s, "a", shape=3, dtype="i4", overwrite=True),
    "to_zarr": lambda s: zarrdask.to_zarr(np.ones(3), s, "a", overwrite=True),
    "copy": lambda s: zarrdask.copy(zarrdask.open_array(s, "b"), s, "a", overwrite=True),
    "rechunk": lambda s: zarrdask.rechunk(
        zarrdask.open_array(s, "b"), s, "a", chunks=1, max_mem="1 MiB", overwrite=True
    ).execute(progress=False),
    "sync": lambda s: zarrdask.sync(
        zarrdask.open_array(s, "c"), zarrdask.open_array(s, "a", mode="r+")
    ),
}


def _three_arrays():
    store = {}
    for name, chunk in [("a", 4), ("b", 4), ("c", 3)]:
        zarrdask.to_zarr(np.arange(12), store, name, chunks=chunk)
    return store


@pytest.mark.slow
@for_each("verb", REPLACING)
@for_each("name", config.DEFAULTS)
def test_an_invalid_setting_costs_no_array_that_was_to_be_replaced(name, verb):
    store = _three_arrays()
    with (
        dask.config.set({f"zarrdask.{name}": "bad!", "scheduler": "sync"}),
        suppress(ZarrdaskError),
    ):
        REPLACING[verb](store)
        return  # it does not need the setting
    assert zarrdask.open_array(store, "a")[...].tolist() == [*range(12)]


@for_each("verb", REPLACING)
def test_an_invalid_setting_is_an_error_before_an_array_is_erased(verb):
    store = _three_arrays()
    with (
        dask.config.set({"zarrdask.manifests": "yes", "scheduler": "sync"}),
        pytest.raises(MetadataError, match=r"zarrdask\.manifests.*'yes'"),
    ):
        REPLACING[verb](store)
    assert zarrdask.open_array(store, "a")[...].tolist() == [*range(12)]


def test_an_invalid_setting_leaves_no_array_behind():
    with dask.config.set({"zarrdask.manifests": "yes"}), pytest.raises(MetadataError, match="yes"):
        zarrdask.create_array(store := {}, shape=3, dtype="i4")
    assert not store


@pytest.mark.parametrize("name", ["threads", "requests", "retries", "block-size", "casting"])
def test_an_invalid_setting_is_an_error_in_whatever_is_called_next(name):
    store = {}
    zarrdask.create_array(store, "a", shape=4, dtype="i4")
    verbs = [
        lambda: zarrdask.open_array(store, "a")[...],
        lambda: zarrdask.from_zarr(store, "a").compute(),
        lambda: zarrdask.create_array(store, "b", shape=4, dtype="i4"),
        lambda: zarrdask.to_zarr(np.zeros(4), store, "b"),
        lambda: zarrdask.open_group(store),
        lambda: zarrdask.copy(store, {}, progress=False),
    ]
    for verb in verbs:
        error = pytest.raises(MetadataError, match=f"zarrdask.{name}")
        with dask.config.set({f"zarrdask.{name}": -1.5}), error:
            verb()
        assert not zarrdask.open_group(store).get("b")
    assert zarrdask.open_array(store, "a")[...].tolist() == [0] * 4
