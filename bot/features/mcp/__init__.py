"""Tools from outside: those of MCP servers. See README.md."""
