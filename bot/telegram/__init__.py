"""Telegram as the bot sees it; the only package that imports python-telegram-bot."""

import os

# PTB's switch to its next major version: without it, reading a length or the wait of a 429 warns.
os.environ.setdefault("PTB_TIMEDELTA", "true")
