"""``python -m zarrdask``: the command line, where the command ``zarrdask`` is not on the path."""

from zarrdask.tools.cli import main

if __name__ == "__main__":
    main()
