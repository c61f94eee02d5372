"""Traces: spans of all steps for an OpenTelemetry collector."""
