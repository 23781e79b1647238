"""Edges that are built from the kernel: verification, conventions, pyramids, the command line.

No room below imports them. Each takes a bounded number of names from the kernel, which
``tests/test_layers.py`` counts. Users take the functions that `zarrdask` exports, and
`conventions`.
"""
