"""Shards of the v3 draft, which are a storage transformer."""

import json

from tests.drafts import (
    sharding,
)
from zarrdask.formats.metadata.array_options import ArrayOptions
from zarrdask.formats.metadata.new_metadata import plan_array


def plan(zarr_format, **options):
    wanted = {"shape": (8, 9), "chunks": (2, 3), "dtype": "i4"} | options
    return plan_array(ArrayOptions(zarr_format=zarr_format, **wanted))


def test_sharding_may_be_given_as_the_document_has_it(zarr_format):
    layers = [sharding(2, 2), sharding(2, 1)]
    metadata = plan(zarr_format, storage_transformers=layers)
    assert metadata.transformers == ()
    assert (metadata.chunk_shape, metadata.read_grid.chunk_shape) == ((8, 6), (4, 6))
    document = json.loads(metadata.render()["array.json"])
    assert document["storage_transformers"] == layers
