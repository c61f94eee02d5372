"""Backups of one bot's memory, and how they are restored without what was erased since."""
