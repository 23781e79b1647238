"""The table of classic cases in docs/rechunking.md, and how other tools are counted in it."""

from itertools import product
from math import ceil, prod
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.rechunk_cases import CASES, CLUSTERS, clusters, ours, table
from benchmarks.rechunkers import (
    Copy,
    TooLittleMemoryError,
    Work,
    count,
    cubed,
    joined,
    rechunker,
    spaced,
)
from tests.covering import for_each

PAGE = Path(__file__).parents[3] / "docs" / "rechunking.md"


@pytest.mark.parametrize("printed", [table, clusters])
def test_the_page_shows_the_tables_as_they_are_printed(printed):
    assert printed() in PAGE.read_text(), "python -m benchmarks.rechunk_cases prints it"


@for_each("case", CASES + CLUSTERS)
def test_no_plan_of_ours_needs_more_than_it_may(case):
    plan = ours(case)
    assert plan.peak <= case.memory
    assert plan.moved <= 6 * case.work.nbytes


# ---- rechunker


def test_rechunker_goes_by_way_of_chunks_that_fit_in_both():
    # Rows of a square become columns; memory has room for ten of either.
    work = Work((100, 100), 1, (1, 100), (100, 1), 1000)
    assert rechunker(work) == [
        Copy((10, 100), (1, 100), (10, 10)),
        Copy((100, 10), (10, 10), (100, 1)),
    ]
    # Each pass reads and writes the array: 100 rows, and 10 x 10 pieces; these, and 100 columns.
    assert count(work, rechunker(work)) == (40_000, 400, 20, 1)


def test_rechunker_copies_at_once_where_the_blocks_are_the_same():
    work = Work((100, 100), 1, (1, 100), (100, 1), 10_001)
    assert rechunker(work) == [Copy((100, 100), (1, 100), (100, 1))]
    assert count(work, rechunker(work)) == (20_000, 200, 1, 1)


def test_rechunker_reads_chunks_again_where_blocks_end_within_them():
    # Blocks of 6 x 6 on chunks of 4 x 4: both axes meet 2, 2 and 1 of the three.
    work = Work((12, 12), 1, (4, 4), (6, 6), 40)
    copies = rechunker(work)
    assert copies == [Copy((6, 6), (4, 4), (6, 6))]
    # Along an axis both blocks meet two chunks: 16 elements of 12.
    assert count(work, copies) == (16 * 16 + 144, 4 * 4 + 4, 4, 4)


def test_a_chunk_larger_than_the_memory_is_refused():
    with pytest.raises(TooLittleMemoryError):
        rechunker(Work((8, 8), 8, (8, 8), (1, 1), 511))
    with pytest.raises(TooLittleMemoryError):
        cubed(Work((8, 8), 8, (8, 8), (1, 1), 5 * 512 - 1))


def test_blocks_grow_from_the_last_axis():
    assert joined((2, 5, 5), (100, 100, 100), 1200) == (2, 5, 100)
    assert joined((2, 5, 5), (100, 5, 5), 1200) == (48, 5, 5)


# ---- cubed


def test_cubed_as_its_own_tests_have_it():
    # ERA5 with 500 MB for a plan and chunks of 25 MB at least, a twentieth.
    work = Work((350640, 721, 1440), 4, (31, 721, 1440), (350640, 10, 10), 5 * 500_000_000)
    copies = cubed(work)
    assert [copy.tasks for copy in copies] == [
        (93, 721, 1440),
        (465, 240, 480),
        (2325, 120, 240),
        (11625, 40, 120),
        (58125, 20, 60),
        (350640, 10, 30),
    ]
    assert [copy.written for copy in copies] == [
        (93, 240, 480),
        (465, 120, 240),
        (2325, 40, 120),
        (11625, 20, 60),
        (58125, 10, 30),
        (350640, 10, 10),
    ]
    assert [copy.read for copy in copies[1:]] == [copy.written for copy in copies[:-1]]
    assert count(work, copies).moved / work.nbytes == pytest.approx(12, abs=0.2)


def test_lengths_between_two_are_whole_multiples_of_each_other():
    assert list(spaced(24, 43800, 3)) == [144, 1008, 6048]
    assert list(spaced(1000, 1, 2)) == [100, 10]


def test_cubed_copies_nothing_where_the_chunks_are_the_same():
    assert cubed(Work((10, 10), 1, (2, 5), (2, 5), 1000)) == []


# ---- what is counted


lengths = st.integers(1, 9)


@st.composite
def copies(draw):
    """A copy of a small array."""
    shape = tuple(draw(st.lists(st.integers(1, 12), min_size=1, max_size=3)))
    three = [tuple(draw(lengths) for _ in shape) for _ in range(3)]
    return shape, Copy(*three)


def boxes(shape, chunks):
    """Yield the chunks of an array as sets of places."""
    counts = (range(ceil(n / c)) for n, c in zip(shape, chunks, strict=True))
    for index in product(*counts):
        axes = zip(index, chunks, shape, strict=True)
        yield set(product(*(range(i * c, min(i * c + c, n)) for i, c, n in axes)))


@given(copies())
def test_what_is_counted_is_what_a_task_after_the_other_would_do(given):
    shape, copy = given
    moved = requests = tasks = 0
    times = dict.fromkeys(range(prod(shape)), 0)
    for task in boxes(shape, copy.tasks):
        tasks += 1
        for number, chunk in enumerate(boxes(shape, copy.read)):
            if chunk & task:
                moved, requests = moved + len(chunk), requests + 1
                times[number] += 1
        for chunk in boxes(shape, copy.written):
            if chunk & task:
                once = 1 if chunk <= task else 2  # in part: it is read first
                moved, requests = moved + once * len(chunk), requests + once
    work = Work(shape, 1, copy.read, copy.written, 0)
    assert count(work, [copy]) == (moved, requests, tasks, max(times.values()))
