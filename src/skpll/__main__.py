"""Let ``python -m skpll`` run the command line."""

import sys

from skpll.cli import main

sys.exit(main())
