"""`python -m rowsmith`: the command, where it is not on the PATH."""

import sys

from rowsmith.cli import main

if __name__ == "__main__":
    sys.exit(main())
