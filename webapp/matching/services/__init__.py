"""Changes to models, proposals and decisions."""
