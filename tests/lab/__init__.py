"""Runs by hand against servers that nobody here wrote."""
