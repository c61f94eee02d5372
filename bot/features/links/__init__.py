"""Links: pages of the web that the model reads, and searches."""
