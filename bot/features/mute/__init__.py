"""Mute: a person wants nothing that they did not ask for."""
