"""The console: pages for operators."""
