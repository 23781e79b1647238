"""Arrays and groups as users hold them."""
