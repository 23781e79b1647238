import pytest, zipfile, subprocess
from zarrdask.storage.zip.store import ZipStore
from zarrdask.testing import StoreContract
class TestZip(StoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        return ZipStore(tmp_path/"a.zip")
class TestZipP(StoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        return ZipStore(tmp_path/"a.zip", "in/side/")
