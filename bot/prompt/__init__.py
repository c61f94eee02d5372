"""What the model is sent, within a budget."""
