"""Nodes with attributes."""


def make(root, path, **attributes):
    return root.create_array(path, shape=(), dtype="i4", attributes=attributes)
