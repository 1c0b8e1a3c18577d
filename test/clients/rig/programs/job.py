"""What every program here is told: one JSON object as its only argument.

{"url": address or null, "command": [program, arguments...] or null, "model": origin of the stand-in, "prompt": text}
"""

import json
import sys

job = json.loads(sys.argv[1])
url = job["url"]
command, *args = job["command"] or [None]
prompt = job["prompt"]
model_url = job["model"] + "/v1"

ACTIVATE = {"tools_on": ["memory_*"], "tools_off": [], "resources_on": [], "resources_off": []}
ENTITIES = {"entities": [{"name": "user", "entityType": "person", "observations": ["likes tea"]}]}


def report(**found):
    """The only thing on stdout that the test reads."""
    print("REPORT " + json.dumps(found), flush=True)
