"""Mutable state of a process: buffers, threads, locks, workspaces."""
