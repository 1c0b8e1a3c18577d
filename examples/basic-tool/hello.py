"""
The smallest namespace: one file with one tool.
Copy this folder into tools/ of the data folder, and it is served.
"""
from fastmcp.tools import tool


@tool
def say_hello(name: str = "World") -> str:
    """Greet someone by name.

    Args:
        name: The person to greet. Defaults to "World".

    Returns:
        A greeting string.
    """
    return f"Hello, {name}!"
