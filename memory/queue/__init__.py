"""The turn protocol: mailbox, doorbell, lease, outbox, erasure and jobs on Redis."""
