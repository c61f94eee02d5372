"""Work that is due at a time: stored, leased, marked before something is sent."""
