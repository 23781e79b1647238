"""Tests of the interface of stores. To test your own store, derive a class from `StoreContract`.

    from zarrdask.testing import StoreContract


    class TestMyStore(StoreContract):
        @pytest.fixture
        def store(self, tmp_path):
            return MyStore(tmp_path)

This package requires pytest.
"""

from zarrdask.testing.contract import StoreContract
from zarrdask.testing.read_only import VALUES, ReadOnlyStoreContract

__all__ = ["VALUES", "ReadOnlyStoreContract", "StoreContract"]
