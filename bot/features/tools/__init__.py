"""Two tools of the model that need no memory: the clock and a calculator."""
