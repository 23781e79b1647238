"""The chunks of joined arrays: which members a read overlaps, and how their chunks are read."""
