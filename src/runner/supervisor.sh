#!/bin/sh
# Runs the deploy script and outlives the service: supervisor.sh <run directory> <script> <ref> <commit>
#
# Descriptor 3 is the lock file of the run. It is locked here and the script inherits it, so no second run can start while
# the script runs. When the lock is held and the pipe for the output exists, supervisor.sh prints "ready" and waits for a
# line of input. If the service has died by then, no script starts. Errors before that are printed as well.
# The exit code is written to a file, so that it is known even if no service was there to see it.
run=$1
shift
exec 2>&1
# Exit code 75 means that the script was not started, even if the shell itself cannot start a process.
trap 'echo "no process can be started"; exit 75' EXIT
flock --exclusive --nonblock 3 || { echo "flock did not get the lock, another process may hold it"; exit; }
mkfifo -m 600 "$run/output" && exec 4<>"$run/output" || exit
echo ready
read -r _ || exit
exec >"$run/output" 2>&1 </dev/null
# A reading end of the output that stays open only here: if the service dies, the script does not die of a broken pipe but
# waits, and the next service reads on.
exec 4<"$run/output"
printf '%s\n' "$$" >"$run/pid" || exit
# Reserves the space for the exit code: the disk may be full when the script exits.
printf '%-4s\n' '' >"$run/exit.new" || exit
lingers=yes
trap 'lingers=' TERM INT HUP
# The shell's message about a killed command would take the place of the script's last line.
exec 5>&2 2>/dev/null
(exec "$@" 2>&5 4<&- 5>&-)
code=$?
trap 'exit "$code"' EXIT
printf '%-4s\n' "$code" 1<>"$run/exit.new" && mv "$run/exit.new" "$run/exit"
# What the pipe still holds lasts as long as somebody has it open. If the service has died, the next one reads it, and then
# removes the directory.
exec >/dev/null 3>&- 5>&-
while read -r name parent; do [ "$name" != PPid: ] || break; done <"/proc/$$/status"
while [ "$parent" != "$PPID" ] && [ "$lingers" ] && [ -e "$run/exit" ]; do sleep 1; done
