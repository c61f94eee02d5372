"""Telegram as the bot sees it; the only package that imports python-telegram-bot."""

import importlib
import os
import sys

# PTB's switch to its next major version: without it, reading a length warns.
os.environ.setdefault("PTB_TIMEDELTA", "true")

# PTB imports cryptography if it is there, for Telegram Passport, which we do not use: 7 MB.
_UNUSED = "cryptography.hazmat.backends"
if _UNUSED not in sys.modules:
    sys.modules[_UNUSED] = None  # type: ignore[assignment]
    importlib.import_module("telegram")
    del sys.modules[_UNUSED]
