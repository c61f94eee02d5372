"""The process around the bot: start, logs, web port, periodic work."""
