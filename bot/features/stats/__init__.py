"""What operators see in the chat: counts and times, never content."""
