"""Codecs: chunk <-> bytes, pure."""
