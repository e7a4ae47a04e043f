"""The pages of the console over a full database: how long they take, and what open tabs cost."""
