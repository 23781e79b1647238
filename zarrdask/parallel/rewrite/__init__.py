"""``rechunk``, ``copy`` and upgrades: nodes, and a strategy for each array.

`node_plan` lists the nodes to read, and the new metadata of each node; `destination` is the array
to write, and `rewrite_changes` records finished tasks, so that an interrupted run can be resumed.
An array is rewritten by one of these strategies:

- bytes as they are: whole stored objects, or chunks of shards (`copying.move`);
- one pass, or several through packed objects (`passes`);
- a pass in which the workers of a cluster send each other pieces (`exchange`, `cluster`).

`rechunk` plans all regions beforehand (`planning`, `array_plan`, `group_plan`), so that memory is
bounded. `copy` takes the objects that a store lists (`copying`), as regions without any would
outnumber them in sparse arrays; it moves their bytes, or decodes and encodes regions of bounded
size in one pass.
"""

# Dask before any of its modules: see `zarrdask.runtime.packages`.
import dask  # noqa: F401
