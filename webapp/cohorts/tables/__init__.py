"""From the bytes of an upload to checked rows and columns: plain Python, no database, no files."""
