"""The agent: decides what comes next, with tools; knows nothing of Telegram."""
