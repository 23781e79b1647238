"""The contestants, a module each: how they open, read lazily, and write.

Each has some of ``eager(path)`` for what NumPy indexes, ``lazy(path, layout, chunks)`` for a Dask
array, ``region(path, region)`` for one of a part, and ``save(x, path, layout)``, where `x` is a
Dask array if the contestant is lazy and an ndarray otherwise; ``replace(x, path, region)`` and
``append(x, path)`` write to an array that is there;
``rechunk(source, target, layout, onto, memory)`` rewrites one. Modules, so that a process imports
only what it measures.
"""

from typing import Any

from benchmarks.rows import Layout


def align(x: Any, layout: Layout) -> Any:
    """Return a Dask array with blocks that end where stored units do: those, unless it has."""
    sizes = zip(x.chunks, layout.units, strict=True)
    aligned = all(n % unit == 0 for axis, unit in sizes for n in axis[:-1])
    return x if aligned else x.rechunk(layout.units)
