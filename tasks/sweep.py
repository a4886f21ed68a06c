"""Process of the sweep: ``python -m tasks.sweep``. Any number may run at the same time.

The sweep is not a thread of the worker because the worker forks. A forked child inherits SQLite's
table of locks but not the locks. When a parent closes a connection that was open at the fork,
the parent acts as the last user and deletes the write-ahead log under the child. All later
commits of the child are lost. A process that forks must never have an open connection.
"""

import signal

import django


def main() -> None:
    """Run the sweep until SIGTERM or SIGINT."""
    django.setup()
    from tasks.sweeper import Sweeper  # models can be imported only after Django's setup
    from webapp.checks import refuse_unsafe_settings
    from webapp.collector import freeze_loaded_objects

    refuse_unsafe_settings()
    sweeper = Sweeper()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, sweeper.stop)
    freeze_loaded_objects()
    sweeper.run()


if __name__ == "__main__":
    main()
