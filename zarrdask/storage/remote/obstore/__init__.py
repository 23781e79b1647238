"""Object stores and HTTP servers, opened by obstore."""
