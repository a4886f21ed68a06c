"""Everything that reads cohorts."""
