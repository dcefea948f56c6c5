#!/bin/sh
# Runs the deploy script and outlives the service: keeper.sh <run directory> <script> <ref> <commit>
#
# Descriptor 3 is the lock of the run, held already, which the script inherits: as long as it runs, no second run can
# start.
# Descriptor 4 is the reading end of the output, kept open here alone: where the service dies, the script does not die
# of a broken pipe but waits, and the service that comes next reads on.
# The exit code is written down, so that it is known even when nobody was there to see it.
run=$1
shift
# What keeps the script from starting ends with 75, be it the shell itself that cannot start a process.
trap 'echo "no process can be started"; exit 75' EXIT
printf '%s\n' "$$" >"$run/pid" || exit
# The room for the exit code is taken now: the disk may be full when it is known.
printf '%-4s\n' '' >"$run/exit.new" || exit
trap : TERM INT HUP
# What a shell says of a command that was killed would take the place of the script's last line.
exec 5>&2 2>/dev/null
(exec "$@" 2>&5 4<&- 5>&-)
code=$?
trap 'exit "$code"' EXIT
printf '%-4s\n' "$code" 1<>"$run/exit.new" && mv "$run/exit.new" "$run/exit"
