"""Pages of the web: fetched from public addresses only, and read as text."""
