"""Changes to image sets and their files; uploads, learning, predictions, corrections."""
