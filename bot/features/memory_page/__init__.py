"""What is remembered: `/memory` shows it and changes it."""
