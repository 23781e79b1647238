"""Stores of other packages, and forks of stores."""
