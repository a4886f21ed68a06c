"""Convolutional network whose probabilities become features beside those of the trees."""
