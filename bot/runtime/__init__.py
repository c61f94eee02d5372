"""The process around the bot: start, logs, web port, maintenance."""
