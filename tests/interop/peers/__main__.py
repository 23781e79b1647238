"""Make what the peers named on the command line need; all of them, if none is named."""

import sys

from tests.interop.peers.environments import REQUIREMENTS, MissingPeer, python_of

failed = False
for name in sys.argv[1:] or (*REQUIREMENTS, "gdal"):
    try:
        print(f"{name}: {python_of(name)}")
    except MissingPeer as error:
        failed = True
        print(f"{name}: {error}")
sys.exit(failed)
