"""What knows the documents and keys of Zarr: consolidated metadata and the draft."""
