#!/bin/sh
# Prepares a run, in one process of the service's: prepare.sh <run directory>
#
# Descriptor 3 is the file of the run's lock, which is taken here and stays with whoever has that file open. Exit code 75
# says that somebody else has it.
flock --exclusive --nonblock --conflict-exit-code 75 3 || exit
exec mkfifo -m 600 "$1/output"
