#!/bin/sh
# npm runs this instead of its shell when Toolgate asks which program `npx` would start: it prints the answer and starts
# nothing. Only the npm that Toolgate started is meant. Any other one, such as an `npx` in a script of a package that is
# being installed, gets the real shell.
code=$TOOLGATE_REPORT_CODE npm=$TOOLGATE_REPORT_NPM
if [ "$npm_lifecycle_event" = npx ] && [ "$PPID" = "$npm" ]; then exec /bin/sh -c "$code" report "$2"; fi
unset TOOLGATE_REPORT_CODE TOOLGATE_REPORT_NPM npm_config_script_shell
exec /bin/sh "$@"
