"""The codecs of the package imagecodecs in v3, with names such as ``imagecodecs_jpegxl``."""
