"""Reads by ranges: large values, parts of chunks, and the indexes that say where these are."""
