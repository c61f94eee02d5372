"""What is stored, where it goes and for how long."""
