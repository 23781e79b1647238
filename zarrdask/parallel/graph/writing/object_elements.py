"""Check the elements of arrays of objects before anything is written."""

from collections.abc import Iterator

import dask.array as da
import numpy as np
from dask.core import flatten

from zarrdask.formats.codecs.numcodecs.items import ITEM_TYPES, check_items
from zarrdask.formats.metadata.convert import flat_codecs
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.parallel.execution.dask_private import DataNode


def check_elements(x: da.Array, metadata: ArrayMetadata) -> None:
    """Check that elements in memory can be stored as text or bytes, if that is how they are stored.

    Raises a CodecError if they can't. Elements that are yet to be computed are checked when they
    are encoded.
    """
    codecs = flat_codecs(metadata) if metadata.dtype.hasobject else ()
    for codec in codecs:
        if (item := ITEM_TYPES.get(codec.name)) is not None:
            for block in _blocks_in_memory(x):
                check_items(block, item, metadata.fill_value)


def _blocks_in_memory(x: da.Array) -> Iterator[np.ndarray]:
    """Yield the blocks of a Dask array that need not be computed."""
    graph = x.__dask_graph__()
    for key in flatten(x.__dask_keys__()):
        block = graph.get(key)
        block = block.value if isinstance(block, DataNode) else block
        if isinstance(block, np.ndarray):
            yield block
