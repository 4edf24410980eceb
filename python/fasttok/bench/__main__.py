"""`python -m fasttok.bench`."""

import sys

from fasttok.bench import main

sys.exit(main())
