"""What reads: image sets with their counts, learned models, predictions and their numbers."""
