"""An in-memory Redis that runs the project's own Lua; it does not know the project's keys."""
