"""Modules of other packages, which are imported when they are first needed."""

from importlib import import_module
from itertools import accumulate
from typing import Any


def load_module(name: str) -> Any:
    """Import a module of another package, after the packages that contain it.

    Python locks a module while it is imported. ``import_module("numcodecs.zstd")`` locks the module
    first and its package second. If another thread imports the package at that time, which locks
    both in the other order, Python resolves the deadlock by returning partially initialized
    modules. If the package is always first, its lock makes all other threads wait.
    """
    for parent in accumulate(name.split("."), "{}.{}".format):
        module = import_module(parent)
    return module
