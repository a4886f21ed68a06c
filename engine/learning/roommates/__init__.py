"""What makes roommates: learning from past years, its weights explained, and pairs proposed."""
