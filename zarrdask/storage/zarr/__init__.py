"""Views of stores: through consolidated metadata, and as a hierarchy of the draft."""
