"""A bundle that can't be loaded in a locked process: it needs the network at import, and ends in a way of its own."""
import os

if "SANDBOX_TEST_HOST" not in os.environ:
    raise SystemExit("a word that nobody should read")

from sandbox_skills import SKILLS  # noqa: E402,F401
