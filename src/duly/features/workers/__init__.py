"""List and drain workers."""
