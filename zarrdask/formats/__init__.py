"""The formats as specified, without I/O: chunk grids, selections, data types, codecs, metadata.

This room imports `zarrdask.runtime` and the rooms below it, and no store. The other rooms take
`ArrayMetadata` and `GroupMetadata` (`metadata.model`), `ChunkGrid` and `Axis` (`grids`),
`Selection` and `Projection` (`indexing`), `Pipeline` (`codecs.pipeline`) and data types
(`dtypes.registry`). Extensions derive from the classes in `codecs`, `dtypes` and `grids`.
"""
