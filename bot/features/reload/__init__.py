"""The feature: an operator changes settings of a bot that runs."""
