"""What all verbs need: one operation after another, and a clock that does not wait."""

import pytest

from zarrdask.storage import unchanged


class Clock:
    """A clock that moves only when it is slept by: the lease of a dead writer ends at once."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture(autouse=True)
def one_after_another(setting, monkeypatch):
    setting({"scheduler": "synchronous", "zarrdask.threads": 1, "zarrdask.requests": 1})
    monkeypatch.setattr(unchanged, "time", Clock())
