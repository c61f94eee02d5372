"""An in-memory Redis that runs the project's own Lua; nothing here knows the project's keys."""
