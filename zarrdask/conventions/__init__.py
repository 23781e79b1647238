"""Conventions for attributes: coordinate reference systems, and the levels of pyramids.

They are attributes like any others: nothing is read or changed because of them, but by the
functions here.
"""

from zarrdask.conventions.pyramids import Level, Multiscale, multiscales, write_multiscales
from zarrdask.conventions.reference import Crs, crs, write_crs

__all__ = [
    "Crs",
    "Level",
    "Multiscale",
    "crs",
    "multiscales",
    "write_crs",
    "write_multiscales",
]
