"""Tasks that run one after another."""

from operator import add, mul

from dask._task_spec import DataNode, Task, TaskRef, _execute_subgraph

from zarrdask.parallel.graph.fuse.task_steps import ordered, prepared, resolve, steps

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


def test_a_prepared_task_computes_what_the_task_does():
    assert prepared(GRAPH["a"])({"x": 4}) == 5
    named = Task("d", int, "12", base=TaskRef("base"))
    assert prepared(named)({"base": 8}) == 10
    assert prepared(DataNode("e", 3))({}) == 3


def test_a_graph_in_a_task_is_computed_in_order():
    inner = {key: GRAPH[key] for key in "abc"}
    whole = Task("w", _execute_subgraph, inner, "c", ("x",), TaskRef("outer"))
    assert prepared(whole)({"outer": 4}) == 5 + 25


def test_arguments_are_values_references_or_tasks():
    values = {"x": 4}
    assert resolve(TaskRef("x"), values) == 4
    assert resolve(DataNode("e", 3), values) == 3
    assert resolve("x", values) == "x"
