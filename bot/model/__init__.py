"""Whoever answers and embeds: the only room that knows the model's SDK."""
