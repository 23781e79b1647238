"""Copies of stored objects: as they are, through indexes of shards, or decoded and encoded."""
