"""Finding what was said: exact hybrid search over one conversation, in the process."""
