"""Imports: talks that people bring along from another assistant."""
