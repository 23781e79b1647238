"""The classes that users hold, `Array` and `Group`, and the functions that return them."""
