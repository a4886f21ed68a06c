"""Everything that changes models, proposals and decisions."""
