"""Entry of `python3 -m venus_edge.setup`: says plainly when this Python is too old, before newer syntax is imported."""

import sys

if sys.version_info < (3, 11):
    sys.exit(
        "set-up: Python 3.11 or newer is needed, this is %d.%d: install it, then `make PYTHON=python3.11 setup`"
        % sys.version_info[:2]
    )

from venus_edge.setup.cli import main  # noqa: E402 - only after the version is known to be right

sys.exit(main())
