"""Durable turns on Redis: mailbox, ready queue, lease, outbox, dead letters, recovery."""
