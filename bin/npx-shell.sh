#!/bin/sh
# npm runs this instead of its shell when Toolgate asks which program `npx` would start: it prints the answer and starts
# nothing. Scripts of packages that are being installed get the real shell, and nothing of this reaches them.
node=$TOOLGATE_REPORT_NODE code=$TOOLGATE_REPORT_CODE
if [ "$npm_lifecycle_event" = npx ] && [ -n "$node" ]; then exec "$node" -e "$code" "$2"; fi
unset TOOLGATE_REPORT_NODE TOOLGATE_REPORT_CODE npm_config_script_shell
exec /bin/sh "$@"
