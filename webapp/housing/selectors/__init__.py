"""What pages read of building lists, requests and placements."""
