"""From features to scores and from marginals to sufficient statistics."""
