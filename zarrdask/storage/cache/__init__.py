"""Caches of values: on the local disk, and in memory after a prefetch."""
