"""Numbers from arrays: ROC, calibration, errors."""
