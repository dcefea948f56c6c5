#!/bin/sh
# Replaces the running version with the one that is checked out here: builds it, starts it, and stops the old version
# when the new one listens.
set -eu
# shellcheck source=/dev/null
. ./app.env # VERSION and BUILD_WAITS_FOR

echo "Building version $VERSION"
# Simulates a slow build: it ends when this file appears.
while [ -n "$BUILD_WAITS_FOR" ] && [ ! -e "$BUILD_WAITS_FOR" ]; do sleep 0.1; done

old=$(cat app.pid 2>/dev/null || true)
VERSION=$VERSION setsid node server.mjs >>app.log 2>&1 &
new=$!
until [ "$(cat app.pid 2>/dev/null)" = "$new" ]; do
  [ -e "/proc/$new/exe" ] || { echo "It exited at once; see app.log" && exit 1; }
  sleep 0.02
done
echo "Version $VERSION listens"

[ -n "$old" ] || exit 0
kill "$old"
while [ -e "/proc/$old/exe" ]; do sleep 0.02; done
echo "The old version has exited"
