"""Margins are made of the elements of an axis, as NumPy pads arrays."""

import numpy as np
import pytest

from tests.covering import for_each
from zarrdask.parallel.graph.overlap.margins import Margins

SIZE = 7
VALUES = np.arange(SIZE) + 1
#: The modes of `numpy.pad` that make the same margins.
MODES = {"reflect": "symmetric", "nearest": "edge", "periodic": "wrap", "constant": "constant"}


def assembled(margins, pick):
    """Return the part of an axis with margins, put together as `Assembly` says."""
    found = margins.assembly(SIZE, pick)
    buffer = np.full(found.length, -1)
    for to, source in found.reads:
        buffer[to] = VALUES[source]
    for to, source, is_reversed in found.copies:
        buffer[to] = buffer[source][::-1] if is_reversed else buffer[source]
    for to in found.fills:
        buffer[to] = margins.value
    return buffer[found.pick]


@for_each("kind", MODES)
def test_every_slice_is_that_of_the_padded_axis(kind):
    value = np.array(9)
    options = {"constant_values": 9} if kind == "constant" else {}
    for before, after in ((2, 3), (7, 0), (0, 7)):
        margins = Margins(before, after, kind, value)
        padded = np.pad(VALUES, (before, after), MODES[kind], **options)
        for start in range(0, len(padded), 3):
            for step in (1, 3):
                for stop in range(start, len(padded) + 1, 4):
                    count = len(range(start, stop, step))
                    pick = slice(start, start + count * step, step)
                    expected = padded[start:stop:step]
                    np.testing.assert_array_equal(assembled(margins, pick), expected)


@pytest.mark.parametrize("kind", MODES)
def test_elements_far_from_the_margins_are_read_as_they_are(kind):
    found = Margins(2, 2, kind, np.array(0)).assembly(100, slice(40, 60, 2))
    assert found.reads == [(slice(0, 10), slice(38, 57, 2))]
    assert not found.copies
    assert not found.fills


def test_a_margin_needs_few_elements_near_it():
    found = Margins(2, 2, "reflect").assembly(100, slice(0, 3, 1))
    assert [source for _, source in found.reads] == [slice(0, 2, 1)]
