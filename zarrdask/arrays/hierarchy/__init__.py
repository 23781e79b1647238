"""Arrays and groups as documents in a store: find, list, create, resize and remove them."""
