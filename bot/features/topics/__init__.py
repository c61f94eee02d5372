"""Topics that recall each other, and the titles of private topics."""
