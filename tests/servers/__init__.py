"""Other people's model servers: the product's local server, told to behave as each of them."""
