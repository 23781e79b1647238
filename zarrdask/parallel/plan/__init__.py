"""Plans: which task reads or writes what. Pure."""
