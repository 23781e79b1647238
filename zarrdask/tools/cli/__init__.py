"""The command line: ``zarrdask info``, ``tree``, ``verify``, ... Each command is one module."""

import sys
from importlib import import_module
from importlib.util import find_spec


def main() -> None:
    """Run the command that the arguments of the process name, and exit."""
    if find_spec("click") is None:
        sys.stderr.write("zarrdask: the command line needs click: pip install zarrdask[cli]\n")
        sys.exit(2)
    sys.exit(import_module("zarrdask.tools.cli.app").run())
