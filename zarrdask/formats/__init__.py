"""Formats: documents <-> metadata, pure. Nothing below this layer knows which one it was."""
