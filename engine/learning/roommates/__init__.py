"""Roommate models: learning from past years, explanation of weights, and proposal of pairs."""
