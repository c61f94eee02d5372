"""All fixed sentences, one TOML file per language."""
