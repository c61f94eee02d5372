"""What passes between us and Telegram."""
