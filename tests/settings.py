"""`Settings` for tests: the class of all settings, those of features included."""

from typing import TYPE_CHECKING

from bot.features import all_settings

if TYPE_CHECKING:
    from config.settings import Settings
else:
    Settings = all_settings()

__all__ = ["Settings"]
