"""`python -m relvm` is the command `relvm`."""

import sys

from relvm.cli import main

sys.exit(main())
