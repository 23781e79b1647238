"""The limit of a sum: two bare threads that open, read, decode and add up, chunk by chunk."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.contestants.limit import chunk_reader
from benchmarks.rows import Layout


def prepare_sum(store: Path, layout: Layout) -> Callable[[], float]:
    """Return what reads and decodes every chunk, and returns the sum of the elements."""
    return chunk_reader(store, layout, np.sum)
