"""``python -m supervisor``: the command ``consul-supervisor`` under another name."""

import sys

from supervisor.cli import main

if __name__ == "__main__":
    sys.exit(main())
