"""Tools: what the model has beside the memory, the clock and a calculator."""
