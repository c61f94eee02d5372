"""Telegram as the bot sees it; the only package that imports python-telegram-bot."""
