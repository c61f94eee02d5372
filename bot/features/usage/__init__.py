"""Usage: how much people may still ask, and what the bot takes and costs."""
