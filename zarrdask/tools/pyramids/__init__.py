"""``pyramid`` and ``update_pyramid``: an array at several resolutions, computed in one pass.

- `levels` has the shapes of the levels, `level_factors` the factors between them, and `conventions`
  the attributes that describe them;
- `kernels` reduces windows of cells; `exact` has the arithmetic of integers, and `missing_values`
  the values that are left out;
- `level_blocks` divides the levels into the blocks of tasks, which `passes` compute depth first;
- `planning` makes a `plan` from a source (`sources`); the engine of `rechunk` executes it, and
  `pyramid_changes` adds levels to an existing group;
- `record` stores how the levels were computed, so that `update` can compute parts of them again.
"""

# Dask before any of its modules: see `zarrdask.runtime.packages`.
import dask  # noqa: F401
