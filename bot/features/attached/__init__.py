"""Behaviors that people attach to a conversation while the bot runs."""
