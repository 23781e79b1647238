"""Metadata documents of all formats <-> one model of arrays and groups. Pure."""
