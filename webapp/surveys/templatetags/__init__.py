"""Template tags and filters of questionnaires."""
