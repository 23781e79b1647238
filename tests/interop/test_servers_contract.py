"""The contract of stores at servers that are not ours: Ceph's, Microsoft's, and one of Google's."""

import pytest

from tests.interop.servers.rows import Place, place, servers
from zarrdask.storage.base import Store
from zarrdask.testing import StoreContract

__all__ = ["place", "servers"]

pytestmark = pytest.mark.filterwarnings(
    # gcsfs passes values to its client in a way that the client warns of.
    "ignore:Sending a large body:ResourceWarning",
    # adlfs leaves its client open at the end.
    "ignore:Unclosed:ResourceWarning",
    "ignore:unclosed:ResourceWarning",
)
#: By the names of tests; `conftest` marks them.
EXPECTED_FAILURES = {
    "test_names_with_odd_characters_are_names[azurite-fsspec]": (
        "adlfs takes what follows a question mark for the version of a blob"
    ),
    "test_names_with_odd_characters_are_names[google-fsspec]": (
        "the emulator takes what follows a semicolon for a parameter"
    ),
}


class TestServers(StoreContract):
    @pytest.fixture
    def store(self, place: Place) -> Store:
        return place.store("a b/c")
