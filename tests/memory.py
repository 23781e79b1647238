"""How much memory something takes."""

import tracemalloc
from contextlib import contextmanager


@contextmanager
def at_most(limit):
    """Fail if more than so many bytes are there at a time, of what is made within."""
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= limit
