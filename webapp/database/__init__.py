"""The database: its backend, waiting for its locks, and full disks."""
