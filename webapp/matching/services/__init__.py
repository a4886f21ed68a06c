"""Changes to models."""
