"""Reminders: what a person wants to be told later."""
