"""Codecs that turn an array into an array."""
