"""What was learned of a scope: facts, synopses and document chunks, found like what was said."""
