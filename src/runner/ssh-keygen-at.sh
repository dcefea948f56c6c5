#!/bin/sh
# ssh-keygen for git, which asks it whether a signature was valid at the commit's own date. Whoever signs chooses that date, so it is
# replaced by VERIFY_AT: seconds since 1970, written in the time zone in which ssh-keygen reads it.
for argument; do
  shift
  case $argument in -Overify-time=*) argument=-Overify-time=$(date --date="@$VERIFY_AT" +%Y%m%d%H%M%S) ;; esac
  set -- "$@" "$argument"
done
exec ssh-keygen "$@"
