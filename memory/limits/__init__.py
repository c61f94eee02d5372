"""What to do when the Redis plan fills up: tell, drop the oldest, keep a reserve."""
