"""Operators hear once that a model fails, and that the budget is nearly spent."""
