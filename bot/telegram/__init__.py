"""Telegram as the bot sees it; the only package that imports python-telegram-bot."""

import os

# PTB's switch to its next major version: without it, reading a length warns.
os.environ.setdefault("PTB_TIMEDELTA", "true")
