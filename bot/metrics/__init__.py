"""What an operator sees of a running bot: counters and times, never anybody's words."""
