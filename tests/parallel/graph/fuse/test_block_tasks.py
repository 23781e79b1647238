"""Tasks of blocks as the argument of a symbolic layer."""

import pickle

from zarrdask.parallel.graph.fuse.block_tasks import BlockTasks


def test_each_block_has_its_task():
    tasks = BlockTasks(((2, 2), (3,)), {(0, 0): (sum, [1]), (1, 0): (sum, [2])})
    assert tasks[1, 0] == (sum, [2])
    assert tasks.numblocks == (2, 1)


def test_it_is_the_same_on_a_scheduler():
    tasks = BlockTasks(((2, 2),), {(0,): 1, (1,): 2})
    again = pickle.loads(pickle.dumps(tasks))
    assert (again.chunks, again.tasks) == (tasks.chunks, tasks.tasks)
