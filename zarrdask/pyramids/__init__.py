"""``pyramid`` and ``update_pyramid``: an array at several resolutions, computed in one pass.

`levels` has the shapes of the levels and `conventions` the attributes that describe them; `kernels`
reduces windows of cells.
"""

# Dask before any of its modules: see `zarrdask.packages`.
import dask  # noqa: F401
