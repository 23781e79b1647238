"""Chunk grids and chunk key encodings. The names below are what your own are derived from."""

from zarrdask.formats.grids.axis import Axis, Even, Uneven, axis_of
from zarrdask.formats.grids.chunk_grid import ChunkGrid
from zarrdask.formats.grids.keys import ChunkKeyEncoding

__all__ = ["Axis", "ChunkGrid", "ChunkKeyEncoding", "Even", "Uneven", "axis_of"]
