"""Services that change building lists, requests and placements."""
