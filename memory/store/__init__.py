"""Access to Redis or Valkey; the only package that imports `redis`."""
