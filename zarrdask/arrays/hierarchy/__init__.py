"""Nodes as documents in a store."""
