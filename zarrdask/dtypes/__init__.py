"""Data types and fill values, one table for each registry of names."""
