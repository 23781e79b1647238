"""``rechunk``, ``copy`` and upgrades: nodes, and a strategy for each array.

`node_plan` says what is read, and what becomes of the metadata of each node; `destination` says
what happens to the target, and records what is done, so that an interrupted run goes on. An array
is rewritten by one of these strategies:

- bytes as they are: whole stored objects, or chunks of shards (`move`);
- one pass, or several through packed objects (`passes`);
- a pass in which the workers of a cluster send each other pieces (`exchange`, `cluster`).

`rechunk` plans all regions beforehand (`planning`, `array_plan`, `group_plan`), so that memory is
bounded. `copy` takes the objects that a store lists (`copy_tasks`), as regions without any would
outnumber them in sparse arrays; it moves their bytes, or decodes and encodes regions of bounded
size in one pass.
"""

# Dask before any of its modules: see `zarrdask.runtime.packages`.
import dask  # noqa: F401
