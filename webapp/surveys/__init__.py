"""Questionnaires that students answer without an account."""
