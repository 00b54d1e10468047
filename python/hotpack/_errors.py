class Error(RuntimeError):
    """hotpack cannot do what was asked; the message says why and what to do, in one line."""


Error.__module__ = "hotpack"  # where programs find it, and what a traceback prints
