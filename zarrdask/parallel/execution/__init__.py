"""Running tasks on any Dask scheduler."""

# Dask before any of its modules: see `zarrdask.runtime.packages`.
import dask  # noqa: F401
