"""The commands that only show what a read or a write will do: ``plan-read``, ``plan-write``."""
