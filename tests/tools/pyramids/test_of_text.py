"""Pyramids of texts and bytes of any length, which can't be packed between passes."""

import numpy as np
import pytest

import zarrdask
from tests.covering import covering

VALUES = {
    "string": np.array(["a", "bb", "ccc", "d"] * 2, object),
    "bytes": np.array([b"a", b"bb", b"ccc", b"d"] * 2, object),
}


@covering(dtype=["string", "bytes"], before=[None, 8], after=[None, 4], levels=[2, 3])
def test_they_are_made_of_shards_and_plain_chunks(dtype, before, after, levels):
    z = zarrdask.create_array({}, shape=8, dtype=dtype, chunks=2, shards=before)
    z[...] = VALUES[dtype]
    plan = zarrdask.pyramid(
        z, {}, levels=levels, method="nearest", convention=None, shards=after or False
    )
    group = plan.execute(progress=False)
    for level in range(levels):
        assert group[str(level)][...].tolist() == VALUES[dtype][:: 2**level].tolist()


def test_memory_that_does_not_suffice_for_one_pass_is_an_error():
    z = zarrdask.create_array({}, shape=4000, dtype="string", chunks=2000)
    with pytest.raises(zarrdask.errors.MetadataError, match="max_mem"):
        zarrdask.pyramid(z, {}, levels=4, method="nearest", convention=None, max_mem="1 MiB")
