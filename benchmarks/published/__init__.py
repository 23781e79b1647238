"""Benchmarks that others publish, run with zarrdask in them: ``python -m benchmarks.published``."""
