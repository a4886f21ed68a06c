"""Start everything and keep it running: ``python -m webapp.supervisor --port 8000``."""

import argparse
import os
import sys

from webapp.instance import instance_folder
from webapp.private_files import make_new_files_private
from webapp.supervisor.address import AddressError, read_port
from webapp.supervisor.supervisor import NOT_WRITABLE, Supervisor, say


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
        instance_folder()
        port = read_port(options.port)
        supervisor = Supervisor(host=options.host, port=port, is_cold=options.warm)
    except AddressError as error:
        say(str(error))
        return 1
    except OSError:
        folder = os.environ.get("BETHE_HALL_INSTANCE") or "instance"
        say(NOT_WRITABLE.format(folder=folder))
        return 1
    if options.check:
        problem = supervisor.problem()
        if problem:
            say(problem)
        return int(bool(problem))
    supervisor.show_in_environment()
    return supervisor.run()


if __name__ == "__main__":
    sys.exit(main())
