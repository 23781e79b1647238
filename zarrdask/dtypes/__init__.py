"""Data types and fill values. The names below are for data types of your own."""

from zarrdask.dtypes.base import DataType, check_configuration

__all__ = ["DataType", "check_configuration"]
