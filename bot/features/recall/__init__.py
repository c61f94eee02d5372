"""Recall: finds old messages, and jumps to them."""
