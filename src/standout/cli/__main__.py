"""``python -m standout.cli`` is ``standout``."""

import sys

from standout.cli import main

if __name__ == "__main__":
    sys.exit(main())
