"""Codecs that turn an array into bytes."""
