"""Text, tables and drawings for people. Pure."""
