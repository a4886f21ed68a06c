"""What operators' programs read: logs without secrets, metrics, readiness."""
