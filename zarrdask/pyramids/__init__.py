"""``pyramid`` and ``update_pyramid``: an array at several resolutions, computed in one pass.

- `levels` has the shapes of the levels, `steps` the factors between them, and `conventions` the
  attributes that describe them;
- `kernels` reduces windows of cells, by the integers of `exact`, without the values of `missing`;
- `blocks` divides the levels into the blocks of tasks, which `passes` compute depth first;
- `planning` makes a `plan` from a source of `sources`; it runs on the engine of `rechunk`, and
  `changes` has what differs for levels that are added to a group;
- `record` is what `update` needs to know about levels that are stored.
"""

# Dask before any of its modules: see `zarrdask.packages`.
import dask  # noqa: F401
