"""``python -m standout`` is the command ``standout``."""

import sys

from standout.cli import main

if __name__ == "__main__":
    sys.exit(main())
