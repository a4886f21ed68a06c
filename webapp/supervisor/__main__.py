"""Start everything and keep it running: ``python -m webapp.supervisor --port 8000``."""

import argparse
import os
import sys

from webapp.private_files import make_new_files_private
from webapp.supervisor import StartError
from webapp.supervisor.address import read_port
from webapp.supervisor.supervisor import Supervisor, say


def main() -> int:
    """Read the options, serve until SIGTERM or SIGINT; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m webapp.supervisor", description=__doc__)
    parser.add_argument("--host", default=os.environ.get("HOST", "127.0.0.1"))
    parser.add_argument("--port", default=os.environ.get("PORT", "8000"))
    parser.add_argument("--check", action="store_true", help="only say what keeps it from starting")
    parser.add_argument("--warm", action="store_true", help="compile what the first job needs, too")
    options = parser.parse_args()
    make_new_files_private()
    try:
        port = read_port(options.port)
        supervisor = Supervisor(host=options.host, port=port, is_cold=options.warm)
        if options.check:
            supervisor.claim()
        else:
            supervisor.run()
    except StartError as error:
        say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
