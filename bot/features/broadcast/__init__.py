"""Broadcast: one message of an operator to all private chats, which people can turn off."""
