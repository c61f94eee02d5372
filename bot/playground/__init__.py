"""The playground: a local Telegram, a local model, and a page to chat in."""
