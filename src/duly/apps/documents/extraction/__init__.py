"""Reading documents: as a job, page by page; its record kept true, its text published at once."""
