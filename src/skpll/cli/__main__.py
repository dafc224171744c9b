"""Let ``python -m skpll.cli`` run the command line."""

import sys

from . import main

sys.exit(main())
