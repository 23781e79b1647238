"""Conventions for attributes: coordinate reference systems, and multiscale pyramids.

Only the functions of this package interpret these attributes; elsewhere they have no effect.
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
