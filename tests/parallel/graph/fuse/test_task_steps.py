"""Tasks that run one after another."""

from operator import add, mul

import numpy as np
import pytest
from dask._task_spec import Alias, DataNode, List, Task, TaskRef, _execute_subgraph
from dask.array.core import getter

from zarrdask.parallel.graph.fuse.task_steps import computed, ordered, prepared, resolve, steps

GRAPH = {
    "a": Task("a", add, TaskRef("x"), 1),
    "b": Task("b", mul, TaskRef("a"), TaskRef("a")),
    "c": Task("c", add, TaskRef("a"), TaskRef("b")),
    "other": Task("other", add, TaskRef("x"), 5),
}


def test_each_task_comes_after_those_that_it_needs_and_before_later_results():
    assert list(ordered(GRAPH, ["c", "other"])) == ["a", "b", "c", "other"]
    assert list(ordered(GRAPH, ["b"])) == ["a", "b"]
    assert list(ordered(GRAPH, ["other", "a"])) == ["other", "a"]


def test_values_are_released_after_their_last_use_unless_they_are_results():
    graph = {key: GRAPH[key] for key in "abc"}

    def released(results):
        return {key: set(finished) for key, _, finished in steps(graph, results)}

    assert released(["c"]) == {"a": {"x"}, "b": set(), "c": {"a", "b"}}
    assert released(["c", "b"]) == {"a": {"x"}, "b": set(), "c": {"a"}}


def once(task):
    return lambda values: computed(task, values)


@pytest.mark.parametrize("compute", [prepared, once])
def test_a_task_computes_what_it_does_for_dask(compute):
    assert compute(GRAPH["a"])({"x": 4}) == 5
    named = Task("d", int, "12", base=TaskRef("base"))
    assert compute(named)({"base": 8}) == 10
    assert compute(Task("n", int, "12", base=9))({}) == 11
    assert compute(DataNode("e", 3))({}) == 3
    assert compute(Alias("f", "x"))({"x": 4}) == 4
    nested = Task("s", sum, List(TaskRef("x"), Task(None, add, Alias("y"), 1), 2))
    assert compute(nested)({"x": 4, "y": 5}) == nested({"x": 4, "y": 5}) == 12
    assert compute(List(TaskRef("x"), 2))({"x": 4}) == [4, 2]
    part = Task("p", getter, np.arange(6), (slice(2, 4),))
    assert compute(part)({}).tolist() == [2, 3]


@pytest.mark.parametrize("compute", [prepared, once])
def test_a_graph_in_a_task_is_computed_in_order(compute):
    inner = {key: GRAPH[key] for key in "abc"}
    whole = Task("w", _execute_subgraph, inner, "c", ("x",), TaskRef("outer"))
    assert compute(whole)({"outer": 4}) == 5 + 25


def test_arguments_are_values_references_or_tasks():
    values = {"x": 4}
    assert resolve(TaskRef("x"), values) == 4
    assert resolve(DataNode("e", 3), values) == 3
    assert resolve("x", values) == "x"
