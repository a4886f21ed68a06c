"""Sign-in by a provider that an organisation already has; a second factor for local people."""
