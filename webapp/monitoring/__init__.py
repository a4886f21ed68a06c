"""Output for programs of operators: logs without secrets, metrics, readiness."""
