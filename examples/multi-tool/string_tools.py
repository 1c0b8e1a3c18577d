"""
Several files in one namespace: the tools of all of them are served together.
"""
from fastmcp.tools import tool


@tool
def reverse(text: str) -> str:
    """Write a text backwards.

    Args:
        text: The text to turn around.

    Returns:
        The text, last character first.
    """
    return text[::-1]


@tool
def count_words(text: str) -> int:
    """Count the words of a text.

    Args:
        text: The text to count in.

    Returns:
        The number of words.
    """
    return len(text.split())
