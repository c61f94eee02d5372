"""An answer that claims to have saved something, and did not, is corrected."""
