"""The reader process: opens one file and sends its pages to the worker.

It runs in a child process with limits on memory and time. It imports only this package, `duly.html_reader`
and `duly.text_decoding`, so the rest of Duly, its settings and its database are never loaded there.
"""
