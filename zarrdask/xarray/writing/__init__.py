"""Write datasets, data arrays and trees."""
