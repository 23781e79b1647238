"""Checking, comparing and repairing stored arrays."""
