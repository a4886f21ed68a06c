"""Estimators: MLE-Struct and the methods it is compared with."""
