"""The interfaces of other packages, for programs that were written for these packages."""
