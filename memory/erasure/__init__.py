"""Forgetting: clearing, correcting, jobs that walk many scopes, export."""
