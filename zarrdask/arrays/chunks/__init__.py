"""Reading and writing the chunks of a stored array."""
