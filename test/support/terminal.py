"""Runs a program on its own terminal: waits for a text on the screen, types, and prints what was shown as JSON.

    terminal.py STEPS PROGRAM ARGUMENT…     STEPS: JSON, [[text to wait for, text to type or {"kill": signal}], …]
"""
import json, os, pty, select, signal, sys, termios, time

steps = json.loads(sys.argv[1])
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
screen = b""
seen = 0
end = time.monotonic() + 20
while time.monotonic() < end:
    ready, _, _ = select.select([terminal], [], [], 0.05)
    if ready:
        try:
            chunk = os.read(terminal, 4096)
        except OSError:
            chunk = b""
        if not chunk:
            break
        screen += chunk
    while steps and steps[0][0].encode() in screen[seen:]:
        wanted, typed = steps.pop(0)
        seen = screen.index(wanted.encode(), seen) + len(wanted.encode())
        if isinstance(typed, str):
            # The program starts to listen just after it has asked.
            time.sleep(0.1)
            os.write(terminal, typed.encode())
        else:
            time.sleep(0.1)
            os.kill(pid, getattr(signal, typed["kill"]))
else:
    os.kill(pid, signal.SIGKILL)
_, status = os.waitpid(pid, 0)
flags = termios.tcgetattr(terminal)[3]
print(json.dumps({
    "screen": screen.decode(errors="replace"),
    "left": steps,
    "code": os.waitstatus_to_exitcode(status),
    "cooked": bool(flags & termios.ECHO and flags & termios.ICANON),
}))
