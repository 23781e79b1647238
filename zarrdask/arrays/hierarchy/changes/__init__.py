"""Changes of nodes: begun, committed or aborted, and recorded where they can be resumed."""
