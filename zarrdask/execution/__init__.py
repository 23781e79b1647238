"""Running tasks on any Dask scheduler."""

# Dask before any of its modules: see `zarrdask.packages`.
import dask  # noqa: F401
