"""The models that answer, learn and embed: the one owner of the OpenAI SDK."""
