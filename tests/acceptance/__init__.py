"""The bot as users and operators see it: a process between two servers and a Valkey."""
