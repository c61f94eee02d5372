"""What is stored of a conversation, a person or a namespace."""
