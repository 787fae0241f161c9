"""`python -m recbulc`."""

import sys

from recbulc.cli.main import main

sys.exit(main())
