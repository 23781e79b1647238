"""What all schedules need: one thread for each writer, and waits that are noted."""

import pytest

from tests.schedules.schedule import noted_waits
from tests.schedules.stores import pausing_disk


@pytest.fixture(autouse=True)
def noted(setting, tmp_path):
    setting({"scheduler": "synchronous", "zarrdask.threads": 1, "zarrdask.requests": 1})
    with noted_waits(), pausing_disk(str(tmp_path / "locks")):
        yield
