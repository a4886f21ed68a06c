"""Django's SQLite backend, for many people at once."""
