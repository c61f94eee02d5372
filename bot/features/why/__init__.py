"""What an answer rests on, and the marks on messages from which something was learned."""
