"""Selections, and their projection on chunks. Pure."""
