"""Stored arrays and groups that are joined: `concat` and `stack`."""
