"""Off the record: the commands that begin and end such a session."""
