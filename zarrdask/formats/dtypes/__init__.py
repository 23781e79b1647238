"""Data types and fill values. The names below are what your own data types are derived from."""

from zarrdask.formats.dtypes.data_type import DataType, check_configuration

__all__ = ["DataType", "check_configuration"]
