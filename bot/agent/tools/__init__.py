"""The tools that the model may use."""
