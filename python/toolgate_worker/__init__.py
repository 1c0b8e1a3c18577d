"""The host program of Python workers: one process for each namespace, which serves its tools over a Unix socket.

main.py      the process: lifeline, output, shutdown
discover.py  finds the tools in a folder, and reports broken files
last_good.py imports earlier versions of files that cannot be loaded now
prepared.py  a tool that is ready to run: checks arguments, runs the function, renders the result
context.py   FastMCP's Context, with what works without a session
call.py      one running call
wire.py      the connection with the gateway: lines of JSON in and out
"""
