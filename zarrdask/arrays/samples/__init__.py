"""Samples of stored arrays: windows in a planned order, and cubes around points."""
