"""The functions that open stores are found by scheme, by suffix and by package."""

from zarrdask.storage.remote.remote_urls import REMOTE_SCHEMES
from zarrdask.storage.schemes import ADAPTERS, STORES


def test_a_suffix_and_a_scheme_have_functions_of_their_own():
    assert STORES.find(".zip") is not STORES.find("zip")
    assert callable(ADAPTERS.find("zarr"))


def test_all_schemes_of_object_stores_have_one_function():
    assert {*REMOTE_SCHEMES} <= {*STORES.names()}
    assert len({STORES.find(scheme) for scheme in REMOTE_SCHEMES}) == 1


def test_other_schemes_are_left_to_fsspec():
    assert STORES.get("ftp") is None
    assert "fsspec" in STORES.names()
