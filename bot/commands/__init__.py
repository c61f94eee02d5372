"""Commands and buttons: what people and operators ask of the bot itself."""
