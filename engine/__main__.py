"""``python -m engine VERB``."""

import sys

from engine.cli.main import main


def run() -> int:
    """Run the verb that the command line names; the command ``bethe-hall`` of an installation."""
    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(run())
