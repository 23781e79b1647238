"""Blocks that overlap their neighbours: the elements that each reads, and its margins."""
