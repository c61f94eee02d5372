"""Hints: says once, below an answer, what a person has not found yet."""
