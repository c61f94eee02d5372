"""Benchmarks: measured through the product's own classes, printed as JSON lines."""
