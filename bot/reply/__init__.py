"""From the model's Markdown to message parts that Telegram accepts."""
