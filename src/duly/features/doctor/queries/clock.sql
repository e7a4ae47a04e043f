-- Purpose: what time it is.
select duly.now()
