#!/bin/sh
# Runs the deploy script and outlives the service: supervisor.sh <run directory> <script> <ref> <commit>
#
# Descriptor 3 is the file of the run's lock. It is locked here, and the script inherits it: as long as the script runs,
# no second run can start. When the lock is taken and the pipe for the output is there, supervisor.sh says "ready" and waits
# to be told to go on; where its service is gone by then, there is no script. What goes wrong before is said as well.
# The exit code is written down, so that it is known even when nobody was there to see it.
run=$1
shift
exec 2>&1
# What keeps the script from starting ends with 75, be it the shell itself that cannot start a process.
trap 'echo "no process can be started"; exit 75' EXIT
flock --exclusive --nonblock 3 || { echo "flock did not get the lock, somebody else may have it"; exit; }
mkfifo -m 600 "$run/output" && exec 4<>"$run/output" || exit
echo ready
read -r _ || exit
exec >"$run/output" 2>&1 </dev/null
# A reading end of the output, kept open here alone: where the service dies, the script does not die of a broken pipe but
# waits, and the service that comes next reads on.
exec 4<"$run/output"
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
