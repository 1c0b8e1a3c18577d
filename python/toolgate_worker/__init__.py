"""The host of tools in Python files: one process for each namespace, asked over a Unix socket.

main.py      the process: its lifeline, its output, its end
discover.py  from a folder to tools, and what is wrong with its files
prepared.py  a tool made ready: arguments checked, function run, result rendered
context.py   FastMCP's Context, as far as it makes sense without a session
call.py      one call under way
wire.py      the contract: lines of JSON in and out
"""
