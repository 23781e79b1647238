"""Peers: other software that reads and writes Zarr, each in a Python of its own.

``python -m tests.interop.peers`` makes what is needed (environments in the folder that the variable
``ZARRDASK_PEERS`` names, or else in ``.peers``); the tests that use a peer do so, too.
"""
