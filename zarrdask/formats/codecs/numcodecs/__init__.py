"""The codecs of the package numcodecs."""
