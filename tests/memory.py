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


def at_most_in_a_call(limit, function):
    """Return what a function gives, and fail if each of three calls takes more than so many bytes.

    What other threads allocate meanwhile counts as well, and matters for low limits: a module that
    one of them imports takes a megabyte to compile.
    """
    for attempt in range(3):
        try:
            with at_most(limit):
                return function()
        except AssertionError:
            if attempt == 2:
                raise
