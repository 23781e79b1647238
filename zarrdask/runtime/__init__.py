"""The resources of a process: threads, buffers, caches, progress, the system.

The state that rooms share is here, as limits of stores are in `zarrdask.storage`; all state of a
process survives a fork. This room imports `zarrdask.config`, `zarrdask.errors` and
`zarrdask.display`. The other rooms take `on_each` (`threads`), buffers and caches of bounded size
(`buffers`, `bounded_cache`, `decoded_chunks`), `progress`, and modules of other packages that are
loaded on demand (`packages`).
"""
