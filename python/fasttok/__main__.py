"""`python -m fasttok`."""

import sys

from fasttok.cli import main

sys.exit(main())
