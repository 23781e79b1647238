"""Zip archives as stores: the central directory, positioned reads, and one writer."""
