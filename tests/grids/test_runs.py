"""Lengths of chunks with runs of equal ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.covering import for_each
from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.grids.runs import MAX_LENGTHS, expand, parse_runs, render_runs, trim_last_run

lists = st.lists(st.integers(1, 3), min_size=1, max_size=12).map(tuple)


@given(lists)
def test_what_is_rendered_is_parsed_to_the_same_lengths(lengths):
    assert expand([parse_runs(render_runs(lengths))]) == (lengths,)


@for_each(
    ("lengths", "text"),
    [
        ((16, 10), [16, 10]),
        ((2, 2, 2), [[2, 3]]),
        ((1, 1, 1, 3), [[1, 3], 3]),
        ((5, 5, 1), [5, 5, 1]),
        ((), []),
    ],
)
def test_three_equal_lengths_become_a_pair(lengths, text):
    assert render_runs(lengths) == text


@for_each(
    "value",
    [
        0,
        -1,
        True,
        2.0,
        "2",
        None,
        {},
        [0],
        [[2, 0]],
        [[0, 2]],
        [[2]],
        [[2, 3, 4]],
        [[2, [3]]],
        [2**63],
    ],
)
def test_other_things_are_no_lengths(value):
    with pytest.raises(MetadataError) as caught:
        parse_runs(value)
    assert caught.value.key == "chunk_shapes"


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 4)), min_size=1, max_size=5), st.data())
def test_what_is_needed_reaches_as_far_as_the_axis(runs, data):
    size = data.draw(st.integers(0, sum(n * times for n, times in runs)))
    [before] = expand([runs])
    [result] = expand([trim_last_run(runs, size)])
    if isinstance(result, int):
        assert set(before) == {result}
    else:
        assert sum(result) >= size
        assert before[: len(result)] == result
        assert set(before[len(result) :]) <= {result[-1]}


def test_an_endless_run_costs_nothing():
    assert expand([trim_last_run([(1, 10**12)], 7)]) == (1,)
    assert expand([trim_last_run([(3, 1), (1, 10**12)], 7)]) == ((3, 1, 1, 1, 1),)


@pytest.mark.parametrize(
    "axes",
    [[[(1, 10**12), (2, 1)]], [[(1, MAX_LENGTHS), (2, 1)]], [[(1, MAX_LENGTHS)], [(1, 1)]]],
)
def test_too_many_lengths_are_an_error_and_no_memory(axes):
    with pytest.raises(UnsupportedError) as caught:
        expand(axes)
    assert caught.value.key == "chunk_shapes"
    assert caught.value.found > MAX_LENGTHS
