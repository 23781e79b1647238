"""Documents to metadata and back. Pure."""
