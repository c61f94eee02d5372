"""The Telegram bot: intake, turns, replies, and all calls to outside servers."""
