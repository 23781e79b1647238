"""Datasets that are rewritten: rechunking and pyramids."""
