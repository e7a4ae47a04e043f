-- Purpose: be sure that the next statement waits for nobody. Locks: the table, as every write does, or an error at once.
lock table duly.api_keys in row exclusive mode nowait
