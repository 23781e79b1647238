"""Plans: which task reads or writes which chunks or shards. Pure."""
