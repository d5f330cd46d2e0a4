"""Run the command with `python -m rowsmith` if it is not on the PATH."""

import sys

from rowsmith.cli import main

if __name__ == "__main__":
    sys.exit(main())
