"""The Telegram bot: intake, turns, replies, and everything that talks to the outside."""
