"""What the bot remembers, on Redis; usable without Telegram and without a model."""
