"""What happens when the Redis plan fills up."""
