"""What changes building lists, requests and placements."""
