"""Stored arrays and groups, without Dask: where grid, codecs and store meet.

This room imports `zarrdask.storage`, `zarrdask.formats` and the rooms below them. The other rooms
take `ArrayRegion` and `StoredChunks` (`chunks`), `NodePath` and the changes of nodes
(`hierarchy`), and the classes that users hold, `Array` and `Group` (`nodes`).
"""
