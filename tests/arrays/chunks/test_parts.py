"""Work on chunks that is divided into parts, and its progress."""

from itertools import chain

import zarrdask
from tests.covering import for_each
from zarrdask.arrays.chunks.parts import in_parts
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.formats.indexing.projection import project
from zarrdask.formats.indexing.selection import whole_region


@for_each("threads", [1, 2])
def test_each_chunk_is_in_one_part_and_counts(threads):
    chunks = chunks_of(zarrdask.create_array({}, shape=50, dtype="i4", chunks=1))
    projection = project(whole_region((50,)), chunks.metadata.grid.axes)
    steps = []
    results = in_parts(
        lambda part: list(part.indices),
        chunks,
        projection,
        threads=threads,
        label="work",
        show=lambda done, total, _: steps.append((done, total)),
        nbytes=200,
    )
    assert sorted(chain(*results)) == [(n,) for n in range(50)]
    assert len(results) > threads
    assert steps[-1] == (50, 50)
