"""A reply is shown while it is written."""
