"""Memory behaviors: what is remembered beside the dialogue, each kind a component of its own."""
