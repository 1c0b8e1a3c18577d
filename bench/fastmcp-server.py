"""The tool of the bench as an ordinary FastMCP server on stdio."""

from fastmcp import FastMCP

mcp = FastMCP("bench")


@mcp.tool
def echo(text: str) -> str:
    """Returns its text."""
    return text


mcp.run("stdio", show_banner=False)
