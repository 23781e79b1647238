"""What writes consist of: targets, jobs, tasks, the records by which they resume, manifests."""
