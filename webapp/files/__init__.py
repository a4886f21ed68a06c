"""Files of organisations: their place, quota, download and removal."""
