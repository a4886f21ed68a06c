"""Views of providers and of one-time codes."""
