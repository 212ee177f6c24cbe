"""The entry point of `python -m relvm`, which is the same as the command `relvm`."""

import sys

from relvm.cli import main

sys.exit(main())
