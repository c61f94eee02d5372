"""Reminders: what a person wants to be told later, and when that is in their time zone."""
