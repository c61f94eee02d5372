"""Pictures: the model sees the photos of a message, and they are found by what they show."""
