"""Backup: what one bot remembers as a file, and restored without what was erased since."""
