"""Independent tasks of blocks as the argument of a symbolic layer."""

from collections.abc import Mapping
from typing import Any

from dask.layers import ArrayBlockwiseDep

from zarrdask.formats.grids.chunk_grid import Index
from zarrdask.parallel.plan.align import Chunks


class BlockTasks(ArrayBlockwiseDep):  # type: ignore[misc]
    """The task that computes each block, which needs no other task."""

    produces_tasks = True

    def __init__(self, chunks: Chunks, tasks: Mapping[Index, Any]) -> None:
        super().__init__(chunks)
        self.tasks = tasks

    def __getitem__(self, index: Index) -> Any:
        return self.tasks[index]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.chunks, self.tasks)
