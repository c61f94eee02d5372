"""Everything that is stored of a chat, as a file."""
