"""Zip archives are opened by paths and URLs."""

import pytest

from zarrdask.storage.zip.open_archive import open_archive, open_member
from zarrdask.storage.zip.store import ZipStore


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a b.zip"
    store = ZipStore(path)
    store.set("g/x", b"1")
    return path


def test_a_path_and_a_url_are_the_same_archive(path):
    for url in (str(path), path.as_uri()):
        assert open_archive(url, None).get("g/x") == b"1"


@pytest.mark.parametrize("member", ["zip://g", "zip://g/", "zip:///g"])
def test_a_member_is_a_store_of_its_own(path, member):
    assert open_member(f"{member}::{path}", None).get("x") == b"1"


def test_without_a_member_it_is_the_whole_archive(path):
    assert open_member(f"zip://::{path}", {"zip": {}}).get("g/x") == b"1"


def test_an_archive_behind_a_file_system_of_fsspec(path):
    pytest.importorskip("fsspec")
    store = open_member(f"zip://g::local://{path}", None)
    assert bytes(store.get("x")) == b"1"
