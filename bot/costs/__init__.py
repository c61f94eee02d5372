"""What models bill: counted, priced, and held to a budget."""
