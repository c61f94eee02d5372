"""Documents: cut into passages, kept in the notebook of a scope, listed and removed."""
