"""Damaged documents and chunks: each gives a right value or a ZarrdaskError.

``python -m tests.fuzz SEED ...`` runs single cases and shows what they are.
"""
