"""Counters and times of a running bot for an operator's monitoring; no text of a person."""
