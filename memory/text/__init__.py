"""Text without any state: tokens, dates, structured answers."""
