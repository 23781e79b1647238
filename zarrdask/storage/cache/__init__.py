"""Values that are kept on the local disk, or read beforehand."""
