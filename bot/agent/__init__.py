"""The agent loop and its tools. It knows nothing of Telegram."""
