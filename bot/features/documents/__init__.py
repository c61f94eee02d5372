"""Files that people send: fetched, read, and stored as passages."""
