"""Locks, leases and conditional changes."""
