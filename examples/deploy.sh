#!/usr/bin/env bash
# Deploys this project: `deploy.sh <ref> <commit>`. Copy it to the root of your repository, `git add --chmod=+x` it,
# and change it as you like. By hand: ./deploy.sh refs/heads/main "$(git rev-parse origin/main)"
#
# It uses a file beside it: a compose file, a stack file (for a Docker Swarm) or, for a project without
# containers, an executable restart.sh. If that starts the app itself, it should call `setsid node app.js >>app.log 2>&1 &`, so
# that the app outlives the deployment.
# Settings (the service passes on those that DEPLOY_ENV names):
#   HEALTH_URL, HEALTH_TIMEOUT   address that must answer 2xx within this many seconds (30); without it, an executable
#                                healthcheck.sh must exit 0
#   DEPLOY_REMOTE                name of the git remote (origin)
#   DEPLOY_RETRY_PAUSES          seconds between the tries to fetch the commit ("1 2 3 3")
set -euo pipefail

main() {
  # Only these shapes reach git: no argument can be an option, a path or a command.
  [[ $# == 2 && $1 =~ ^refs/heads/(main|master)$ && $2 =~ ^([0-9a-f]{40}|[0-9a-f]{64})$ ]] ||
    fail "Usage: deploy.sh refs/heads/main|master <commit of 40 or 64 lower-case hex digits>; got: $(printf '%q ' "$@")"
  ref=$1 branch=${1##*/} commit=$2
  [[ -n ${DEPLOY_PREVIOUS-} ]] || pull # If it is set, an older deploy.sh has pulled and started this one.
  update_submodules
  fetch_large_files
  if names_compose_file || any {,docker-}compose.{yaml,yml}; then replace_containers
  elif any {,docker-}stack.{yaml,yml}; then
    command -v hotpush >/dev/null ||
      fail "There is a stack file, which compose cannot roll out, but no hotpush in the PATH. Install it on this machine, or let the service run this script."
    replace_containers
  elif [[ -x restart.sh ]]; then restart
  else echo "No compose or stack file and no executable restart.sh: nothing to build, nothing to restart."; fi
  check_health
  tip=$(git rev-parse HEAD)
  echo "==> Done: $branch is at ${tip:0:7} (was ${DEPLOY_PREVIOUS:0:7})"
}

pull() {
  echo "==> Pull"
  command -v git >/dev/null || fail "git is missing. Install it (Debian: apt-get install git) and deploy again."
  [[ $(git rev-parse --show-toplevel) -ef . ]] || fail "$PWD is not the root of a git checkout this user may use."
  remote=${DEPLOY_REMOTE:-origin}
  [[ -z ${DEPLOY_ID-} ]] || remove_left_locks
  if [[ -n ${DEPLOY_ID-} ]] && git cat-file -e "$commit^{commit}" 2>/dev/null; then
    # Hotpush has fetched the head of the branch, and decided on exactly this commit.
    tip=$commit
    git update-ref "refs/remotes/$remote/$branch" "$tip"
    # It leaves git's housekeeping to this script, which does it in the foreground: see below.
    git -c gc.autoDetach=false gc --auto --quiet || true
  else
    # A host may report a push before all of its servers have it, and networks fail: retry for a while.
    for pause in ${DEPLOY_RETRY_PAUSES:-1 2 3 3} none; do
      why="git could not fetch $branch from $remote, for the reason above. Check address, credentials and network."
      # git's housekeeping runs in the foreground: in the background it would keep the deployment's lock.
      if git -c gc.autoDetach=false -c maintenance.autoDetach=false \
        fetch --no-recurse-submodules "$remote" "+$ref:refs/remotes/$remote/$branch"; then
        tip=$(git rev-parse "refs/remotes/$remote/$branch")
        if git merge-base --is-ancestor "$commit" "$tip" 2>/dev/null; then break; fi
        why="Commit ${commit:0:7} is not in $branch of $remote: a force push has replaced it, or it is gone."
        why+=" Nothing was changed here. To deploy what $branch is now: ./deploy.sh $ref $tip"
      fi
      [[ $pause != none ]] || fail "$why"
      echo "Commit ${commit:0:7} is not there yet; trying again in $pause s."
      sleep "$pause"
    done
  fi
  [[ $tip == "$commit" ]] || echo "$branch has moved on since that push: deploying its newest commit, ${tip:0:7}."
  DEPLOY_PREVIOUS=$(git rev-parse --verify --quiet HEAD || echo nothing)
  before=$(cat deploy.sh 2>/dev/null || true)
  lost=$(in_the_way)
  [[ -z $lost ]] || fail "This version has files that are here too, with other content, and not in git: ${lost% }. Nothing was changed. Keep what you need of them, remove them here, and deploy again."
  edited=$(git diff --name-only --ignore-submodules HEAD 2>/dev/null | sed -n 1,5p | tr '\n' ' ' || true)
  [[ -z $edited ]] || echo "Discarding what was edited here and not committed: $edited"
  # To the branch as it is now, so that a late push can't roll a newer one back. Untracked files (.env, data) stay;
  # local commits and edits of tracked files are discarded. Submodules follow in update_submodules. Hooks are for people: their
  # programs (husky, lefthook) may be missing here, and git would fail with them.
  git -c core.hooksPath=/dev/null checkout --quiet --force --no-recurse-submodules -B "$branch" "$tip" -- ||
    fail "git could not write this version, for the reason above. If a file or directory belongs to another user (a container's), give it to the owner of the checkout: chown"
  if [[ -e deploy.sh && $(cat deploy.sh) != "$before" ]]; then
    echo "deploy.sh has changed: going on with the new one."
    DEPLOY_PREVIOUS=$DEPLOY_PREVIOUS exec ./deploy.sh "$ref" "$commit"
  fi
}

# Files that git would overwrite, and directories that it would remove, for new ones of this version. Those of `hotpush init` may be,
# and a file that a killed git has begun to write.
in_the_way() {
  local head named=''
  # Before the first commit: an empty tree.
  head=$(git rev-parse --verify --quiet HEAD || git hash-object -t tree /dev/null)
  git diff-tree -r -z --name-only --no-renames --diff-filter=A --ignore-submodules "$head" "$tip" | while IFS= read -r -d '' file; do
    # A file or link may be where this version has a directory.
    place=$file above=$file
    while [[ $above == */* ]]; do
      above=${above%/*}
      [[ -d $above && ! -L $above ]] || place=$above
    done
    [[ $file != deploy.sh && $place != "$named" && -n $(git ls-files --others -- ":(literal)$place") ]] || continue
    if [[ $place == "$file" ]]; then
      ! grep -qsm 1 '^# Written by .hotpush init' "./$file" || continue
      ! (set +o pipefail && git cat-file --filters "$tip:$file" | head -c "$(stat -c %s "./$file")" | cmp -s - "./$file") || continue
    fi
    named=$place
    printf '%s ' "$place"
  done
}

# To the commits that this one names, from the addresses that it names. Git decides which protocols it allows there (no
# ext:, no local path), and runs no command of .gitmodules.
update_submodules() {
  [[ -e .gitmodules ]] || return 0
  modules=$(git rev-parse --git-path modules)
  [[ -z ${DEPLOY_ID-} || ! -d $modules ]] || find "$modules" -type f -name '*.lock' -delete # See remove_left_locks.
  foreign=$(foreign_submodules .)
  [[ -z $foreign ]] || fail "These submodules belong to another user, whose programs git would run as root. Give them to root: chown --recursive root ${foreign% }"
  { git submodule --quiet sync --recursive &&
    git -c gc.autoDetach=false -c maintenance.autoDetach=false submodule update --init --recursive --force; } ||
    fail "git could not update the submodules, for the reason above. Does this user have access to each address in .gitmodules?"
  other=$(git submodule status --recursive | grep '^[+U]' || true)
  [[ -z $other ]] || fail "These submodules are not at the commit that this version names: $other"
}

# For root: submodules, inner ones too, whose repository another user could exchange. Git asks only whose the outermost one is.
foreign_submodules() {
  ((EUID == 0)) || return 0
  git -C "$1" ls-files --stage -z | while IFS=$'\t' read -r -d '' entry path; do
    [[ $entry == 160000\ * && -e $1/$path/.git ]] || continue
    if [[ -O $1/$path && -O $1/$path/.git ]]; then foreign_submodules "$1/$path"; else printf '%s ' "$1/$path"; fi
  done
}

# Without git-lfs, git checks out a file of Git LFS as a text of three lines that points to it: nothing to build from.
fetch_large_files() {
  left=$(pointers)
  [[ -n $left ]] || return 0
  git lfs version ||
    fail "git-lfs is missing, and these files are in Git LFS: $left. Install it (Debian: apt-get install git-lfs) and deploy again."
  in_each_repository 'git lfs install --local --skip-repo >/dev/null && git lfs pull'
  left=$(pointers)
  [[ -z $left ]] || fail "git-lfs has not fetched $left. Are GIT_LFS_SKIP_SMUDGE and lfs.fetchexclude unset?"
}

# The first files that still are such a text: they have at most 1 KiB.
pointers() {
  # shellcheck disable=SC2016 # The shells that it starts expand this.
  in_each_repository 'git ls-files -z -- ":(attr:filter=lfs)" | sed -z "s|^|./|" | xargs -0r sh -c '\''
    find "$@" -maxdepth 0 -type f -size -3 -exec grep -l "^version https://git-lfs.github.com/spec/" {} + || true'\'' sh' |
    sed -n '1,3s|^\./||p' | tr '\n' ' '
}

in_each_repository() {
  sh -c "$1" && { [[ ! -e .gitmodules ]] || git submodule --quiet foreach --recursive "$1"; }
}

# A git that was killed (a power cut, a killed container) leaves its locks, and every later git stops at them. Hotpush
# runs one deployment at a time and waits for the processes of the one before, so nothing holds these locks. If a person
# runs this script (no DEPLOY_ID), a git of the service may hold them, and they stay.
remove_left_locks() {
  for name in config index HEAD packed-refs shallow "$ref" "refs/remotes/$remote/$branch"; do
    lock=$(git rev-parse --git-path "$name.lock")
    [[ ! -e $lock ]] || { rm -- "$lock"; echo "Removed $lock, which a git that was killed has left."; }
  done
}

# `hotpush`, which the service puts into the PATH, starts the new container beside the old one and drops no request; if
# the new one is not healthy, the old one goes on. Compose alone stops a container before it starts the new one: for
# some seconds that service does not answer, and if the new container turns out unhealthy, the old one is gone.
replace_containers() {
  echo "==> Build and replace"
  if command -v hotpush >/dev/null; then
    # It also removes old images of this project, but none that `hotpush rollback` needs.
    hotpush rollout --prune || { code=$?; check_docker >/dev/null; exit "$code"; }
    return
  fi
  check_docker
  docker compose up -d --build --wait --remove-orphans
  echo "==> Prune" # Only images of this project that a newer build took the tag from.
  project=$(docker compose config | sed -nE 's/^name: "?([a-z0-9_-]+)"?$/\1/p')
  docker image prune --force --filter "label=com.docker.compose.project=$project" || echo "Could not prune; going on."
}

check_docker() {
  docker compose version ||
    fail "There is a compose or stack file, but no docker compose. Install it: https://docs.docker.com/engine/install/"
  docker version --format 'Docker Engine {{.Server.Version}}' ||
    fail "Docker does not answer. Start it (systemctl start docker), or let this user at its socket (group docker)."
}

# Its output goes through a file, and every other descriptor is closed: else a process that restart.sh leaves running
# would hold our output, and the deployment's lock, for as long as it lives.
restart() {
  echo "==> Restart"
  output=$(mktemp)
  (
    trap - INT QUIT
    for fd in /proc/self/fd/*; do fd=${fd##*/} && if ((fd > 2)); then exec {fd}>&-; fi; done
    exec ./restart.sh
  ) >"$output" 2>&1 &
  tail -f -n +1 -s 0.1 --pid=$! "$output"
  rm "$output"
  wait $!
}

check_health() {
  echo "==> Health check"
  probe=(./healthcheck.sh)
  if [[ -n ${HEALTH_URL-} ]]; then
    command -v curl >/dev/null || fail "HEALTH_URL needs curl. Install it (Debian: apt-get install curl)."
    probe=(curl --fail --location --silent --show-error --output /dev/null --max-time 5 "$HEALTH_URL")
  elif [[ ! -x healthcheck.sh ]]; then
    echo "No HEALTH_URL and no healthcheck.sh: only the containers' own health checks, if any, were looked at."
    return
  fi
  deadline=$((SECONDS + ${HEALTH_TIMEOUT:-30}))
  until "${probe[@]}"; do
    ((SECONDS <= deadline)) || fail "Not healthy after ${HEALTH_TIMEOUT:-30} s, for the reason above."
    sleep 0.5
  done
}

# By COMPOSE_FILE, which compose takes from the environment, else from .env.
names_compose_file() {
  [[ -n ${COMPOSE_FILE-} ]] || grep -qsE '^\s*(export\s+)?COMPOSE_FILE\s*=\s*[^[:space:]#]' .env
}

any() { for file; do [[ ! -e $file ]] || return 0; done; return 1; } # Whether one of these is here.

fail() { echo "FAILED: $*" >&2; exit 1; }

{
  cd -- "${REPO_PATH:-$(dirname -- "$0")}"
  export REPO_PATH=$PWD
  exec </dev/null
  if [[ -n ${DEPLOY_PREVIOUS-} ]]; then main "$@"; exit; fi
  # The script's own log. tee goes on when nobody reads the output any more, and the exit code is main's, not tee's.
  [[ -n ${DEPLOY_LOG-} ]] || { DEPLOY_LOG=$(mktemp -t deploy.XXXXXX.log); echo "Log: $DEPLOY_LOG" >&2; }
  set +e
  (set -e; main "$@") 2>&1 | tee -pa "$DEPLOY_LOG"
  exit "${PIPESTATUS[0]}"
}
