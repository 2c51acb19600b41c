"""``python -m byocviz``."""

import sys

from byocviz.cli import main

sys.exit(main())
