"""Text without storage: tokens, dates, names, untrusted text, structured answers."""
