"""Shapes of requests and answers, used by checks, answers and the OpenAPI document alike."""
