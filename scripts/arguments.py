"""What the benchmarks' command lines have in common."""


def count(text: str) -> int:
    """A whole number, at least 1; `argparse` says what is wrong by this function's name."""
    if int(text) < 1:
        raise ValueError
    return int(text)
