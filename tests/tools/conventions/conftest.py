"""What tests of several conventions need."""

import pytest

import zarrdask


@pytest.fixture
def root():
    return zarrdask.create_group({})
