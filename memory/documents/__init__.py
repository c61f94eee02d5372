"""Documents of a scope: cut into passages, stored, listed and removed."""
