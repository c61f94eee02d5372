"""The feature: an operator changes settings while the bot runs."""
