"""What strict mode does."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import zarrdask


@contextmanager
def refused(rule: str) -> Iterator[None]:
    """Check that what is done within is an error that names a rule, as strict mode gives it."""
    with pytest.raises(zarrdask.errors.MetadataError) as caught:
        yield
    assert f"({rule})" in str(caught.value)
