"""Codecs that turn bytes into bytes."""
