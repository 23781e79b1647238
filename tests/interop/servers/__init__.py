"""Servers of object stores for tests and developers, each started by a script, on loopback only.

`python -m tests.interop.servers ceph` starts one of them, prints how to open a URL in it, and ends
it at Ctrl-C. Servers are those of `__main__.SERVERS`.
"""
