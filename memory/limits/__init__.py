"""Quotas, send rates, billed tokens, and a Redis that fills up."""
