"""What writes: image sets and their files, uploads, learning, predictions, corrections."""
