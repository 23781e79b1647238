"""Selections, and the parts of chunks that they meet. Pure."""
