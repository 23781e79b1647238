"""Chunk grids and chunk key encodings. Derive your own from the classes below."""

from zarrdask.formats.grids.axis import Axis, Even, Uneven, axis_of
from zarrdask.formats.grids.chunk_grid import ChunkGrid
from zarrdask.formats.grids.keys import ChunkKeyEncoding

__all__ = ["Axis", "ChunkGrid", "ChunkKeyEncoding", "Even", "Uneven", "axis_of"]
