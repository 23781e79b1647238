"""Stored arrays and groups, without Dask: chunk grid, codecs and store put together.

This room imports `zarrdask.storage`, `zarrdask.formats` and the rooms below them. The other rooms
take `ArrayRegion` and `StoredChunks` (`chunks`), `NodePath` and the changes of nodes
(`hierarchy`), and the classes that users hold, `Array` and `Group` (`nodes`).
"""
