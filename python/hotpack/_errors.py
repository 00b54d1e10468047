class Error(RuntimeError):
    """hotpack cannot do what was asked; the message says why and what to do, in one line."""
