"""`python -m bot check`: tests the settings and every outside service, and says what to do."""
