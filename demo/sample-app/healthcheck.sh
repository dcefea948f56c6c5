#!/bin/sh
# The app is healthy if it answers with the version that is checked out here.
set -eu
# shellcheck source=/dev/null
. ./app.env # VERSION

answer=$(node --eval "fetch('http://127.0.0.1:$APP_PORT').then((reply) => reply.text()).then(console.log)")
echo "The app answers: $answer"
[ "$answer" = "Hello from version $VERSION" ]
