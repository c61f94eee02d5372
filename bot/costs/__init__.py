"""Tokens that model servers bill: counted, priced, and limited by a budget."""
