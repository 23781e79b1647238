"""Chunk grids and chunk key encodings. The names below are what your own are derived from."""

from zarrdask.grids.axis import Axis, Even, Uneven, axis_of
from zarrdask.grids.base import ChunkGrid
from zarrdask.grids.keys import ChunkKeyEncoding

__all__ = ["Axis", "ChunkGrid", "ChunkKeyEncoding", "Even", "Uneven", "axis_of"]
