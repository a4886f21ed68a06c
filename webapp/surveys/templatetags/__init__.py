"""Template words of questionnaires."""
