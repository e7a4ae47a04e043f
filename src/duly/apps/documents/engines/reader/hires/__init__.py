"""The engine `hires`: layout detection and OCR on rendered pages."""
