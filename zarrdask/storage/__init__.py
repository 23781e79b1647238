"""Stores: bytes by key."""
