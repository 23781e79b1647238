"""The local disk: files, and directories that are replaced as a whole."""
