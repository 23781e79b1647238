"""Conventions for attributes: reference systems, positions in space, and multiscale pyramids.

Only the functions of this package interpret these attributes; elsewhere they have no effect.
"""

from zarrdask.tools.conventions.georeference import write_crs
from zarrdask.tools.conventions.geozarr import GeoZarr
from zarrdask.tools.conventions.labels import labels
from zarrdask.tools.conventions.levels import Level, Multiscale
from zarrdask.tools.conventions.ome import OmeZarr
from zarrdask.tools.conventions.pyramids import multiscales, write_multiscales
from zarrdask.tools.conventions.reference import Crs, crs
from zarrdask.tools.conventions.spatial import Spatial, spatial

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
