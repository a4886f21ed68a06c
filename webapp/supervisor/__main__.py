"""Start everything and keep it running: ``python -m webapp.supervisor --port 8000``."""

import argparse
import os
import sys

from webapp.supervisor.supervisor import Supervisor


def main() -> int:
    """Read the options, serve until SIGTERM or SIGINT; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m webapp.supervisor", description=__doc__)
    parser.add_argument("--host", default=os.environ.get("HOST", "127.0.0.1"))
    parser.add_argument("--port", type=int, default=int(os.environ.get("PORT", "8000")))
    options = parser.parse_args()
    return Supervisor(host=options.host, port=options.port).run()


if __name__ == "__main__":
    sys.exit(main())
