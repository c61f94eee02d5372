"""The bot as its users and operators meet it: a process between two servers and a Valkey."""
