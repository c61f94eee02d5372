"""Instructions: how the bot should answer in one conversation."""
