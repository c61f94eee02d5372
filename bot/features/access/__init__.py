"""Access: people who ask to come in, invitations, and the list of who may use the bot."""
