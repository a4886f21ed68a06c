"""Pages of buildings, requests and placements."""
