"""Drawing: the model may draw for people."""
