"""What ends the command."""


class BenchError(Exception):
    """Its text is the one line that is printed."""
