"""Voice: hears voice messages, and speaks the answers to them."""
