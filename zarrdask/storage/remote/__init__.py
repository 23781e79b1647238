"""Remote stores: requests, their limits, retries and errors."""
