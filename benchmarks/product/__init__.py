"""The running product under load, under faults and in a browser."""
