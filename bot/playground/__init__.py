"""The playground: a page to chat in, and a local model."""
