"""Supervisor of `bin/start`, and the commands of the programs that it and service managers run."""


class StartError(RuntimeError):
    """Reason why the server cannot start, as a sentence for the person who starts it."""
