"""Conventions for attributes: reference systems, places in space, and multiscale pyramids.

Only the functions of this package interpret these attributes; elsewhere they have no effect.
"""

from zarrdask.conventions.georeference import write_crs
from zarrdask.conventions.geozarr import GeoZarr
from zarrdask.conventions.labels import labels
from zarrdask.conventions.levels import Level, Multiscale
from zarrdask.conventions.ome import OmeZarr
from zarrdask.conventions.pyramids import multiscales, write_multiscales
from zarrdask.conventions.reference import Crs, crs
from zarrdask.conventions.spatial import Spatial, spatial

__all__ = [
    "Crs",
    "GeoZarr",
    "Level",
    "Multiscale",
    "OmeZarr",
    "Spatial",
    "crs",
    "labels",
    "multiscales",
    "spatial",
    "write_crs",
    "write_multiscales",
]
