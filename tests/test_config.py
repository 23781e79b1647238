"""Settings."""

import dask
import pytest

import zarrdask
from zarrdask import MetadataError, config

BAD = [
    ("block-size", "lots"),
    ("block-size", -1),
    ("block-size", "inf"),
    ("block-size", float("nan")),
    ("chunk-size", [1]),
    ("requests", 0),
    ("retry-delay", "-1 s"),
    ("strict", "yes please"),
    ("strict", 2),
    ("threads", "many"),
    ("threads", 0),
    ("lock-directory", 7),
]


@pytest.mark.parametrize(("name", "value"), BAD)
def test_a_bad_value_is_an_error_that_names_the_key(name, value):
    with dask.config.set({f"zarrdask.{name}": value}), pytest.raises(MetadataError) as caught:
        config.get(name)
    assert caught.value.key == f"zarrdask.{name}"
    assert isinstance(caught.value, ValueError)
    assert caught.value.expected


def test_a_bad_value_is_an_error_of_the_call_that_needs_it():
    z = zarrdask.create_array({}, shape=4, dtype="i4")
    setting = {"zarrdask.block-size": "lots"}
    with (
        dask.config.set(setting),
        pytest.raises(MetadataError, match=r"^zarrdask\.block-size: .*'lots'"),
    ):
        zarrdask.from_zarr(z)


@pytest.mark.parametrize(
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
