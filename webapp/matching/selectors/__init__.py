"""Everything that reads models and proposals."""
