"""Files that people send: fetched, read, and handed to the memory as passages."""
