"""Sign-in by an organisation's own identity provider; a second factor for local accounts."""
