"""Data types and fill values. Derive data types of your own from the classes below."""

from zarrdask.formats.dtypes.data_type import DataType, check_configuration

__all__ = ["DataType", "check_configuration"]
