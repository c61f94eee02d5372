"""Learning after the reply: vectors, running state, facts, synopses. Never on a turn's path."""
