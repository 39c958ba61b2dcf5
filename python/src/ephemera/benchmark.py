"""Plays a policy in all tasks of a track: ``python -m ephemera.benchmark mymodule:Policy``."""

import sys

from .shell import main

if __name__ == "__main__":
    sys.exit(main())
