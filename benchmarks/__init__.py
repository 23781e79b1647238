"""zarrdask beside the other ways to compute on Zarr arrays; see README.md."""
