"""Chunk grids of the v3 draft."""

import json

import pytest

import zarrdask
from tests.drafts import (
    NOBODY,
    array,
    stored,
)
from zarrdask.errors import (
    MetadataError,
)
from zarrdask.formats.grids.chunk_grid import GRIDS
from zarrdask.formats.grids.regular import RegularGrid


def test_a_registered_grid_is_known_by_its_uri(own_registries):
    class Halves(RegularGrid):
        @classmethod
        def from_configuration(cls, configuration, shape):
            assert configuration == {"type": "halves", "of": 2}
            return cls(shape, tuple(-(-n // 2) for n in shape))

        def to_json(self):
            return {"name": NOBODY, "configuration": {"type": "halves", "of": 2}}

    GRIDS.register(NOBODY, Halves)
    grid = {"extension": NOBODY, "type": "halves", "of": 2}
    store = stored(array((5,), chunk_grid=grid))
    result = zarrdask.open_array(store, "a", mode="r+")
    assert result.chunks == (3,)
    result.attrs["x"] = 1
    assert json.loads(store["meta/a.array.json"])["chunk_grid"] == grid
    with pytest.raises(MetadataError, match="chunk_grid"):
        zarrdask.open_array(stored(array((5,), chunk_grid=grid | {"extension": "regular"})), "a")
