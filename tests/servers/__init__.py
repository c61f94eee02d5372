"""Local servers for tests: Telegram, and model servers that behave like those of docs/models.md."""
