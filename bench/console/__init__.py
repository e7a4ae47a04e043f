"""Time of the console pages on a large database, and the database load of open tabs."""
