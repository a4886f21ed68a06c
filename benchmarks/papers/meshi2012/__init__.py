"""Experiments of Meshi, Jaakkola and Globerson (2012)."""
