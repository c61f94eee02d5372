"""Tests: real servers on loopback, a real Valkey, no mocks."""
