"""The process of the sweep: ``python -m tasks.sweep``. Any number may run at the same time.

It is not a thread of the worker because the worker forks. A forked child inherits SQLite's table
of locks but not the locks themselves: when a parent closes a connection that was open at the fork,
it believes itself the last user and deletes the write-ahead log under the child, and what the child
commits from then on is lost. No connection may ever be open in a process that forks.
"""

import signal

import django


def main() -> None:
    """Sweep until SIGTERM or SIGINT."""
    django.setup()
    from tasks.sweeper import Sweeper  # models can be imported only now
    from webapp.common.checks import refuse_unsafe_settings

    refuse_unsafe_settings()
    sweeper = Sweeper()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, sweeper.stop)
    sweeper.run()


if __name__ == "__main__":
    main()
