"""References to ranges of other files."""
