"""What all verbs need: one operation after another, and a clock that does not wait."""

import pytest

from tests.clocks import Clock
from zarrdask.arrays.hierarchy import claim
from zarrdask.storage.locks import leases


@pytest.fixture(autouse=True)
def one_after_another(setting, monkeypatch):
    setting({"scheduler": "synchronous", "zarrdask.threads": 1, "zarrdask.requests": 1})
    # An append that was complete is made again.
    setting({"zarrdask.append-checks": "off"})
    # The lease of a dead writer ends at once.
    clock = Clock()
    for module in (claim, leases):
        monkeypatch.setattr(module, "time", clock)
