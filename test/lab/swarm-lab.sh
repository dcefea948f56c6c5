#!/usr/bin/env bash
# A real Docker Swarm of several nodes on one machine, out of the programs and images of docker-lab.sh. A node is a dockerd
# with network, mount, process, IPC and host-name namespaces of its own. The nodes hang on a bridge in one more namespace,
# "hub", and so does this machine, as $NET.253, so that tests reach each node at its own address, $NET.<number>.
#
#   swarm-lab.sh up                start; node 1 is the manager
#   swarm-lab.sh kill 2            kill -9 the dockerd of node 2; its containers go on
#   swarm-lab.sh lose 2            power node 2 off: every process of it dies at once
#   swarm-lab.sh start 2           start what was killed or lost
#   swarm-lab.sh down              remove all of it
#
# The socket of node 2's engine is $DIR/n2/docker.sock.
# Environment: NODES (3), NET, LAB (of docker-lab.sh), DIR (default: a directory in the temporary directory)
# A kernel without IPVS has no routing mesh: use `endpoint_mode: dnsrr` and ports with `mode: host`.
set -euo pipefail
LAB=${LAB:-${TMPDIR:-/tmp}/hotpush-lab}; DIR=${DIR:-${TMPDIR:-/tmp}/hotpush-swarm-lab}
NODES=${NODES:-3}; NET=${NET:-192.168.77}; LINK=${LINK:-hotpush-swarm}
export PATH=$LAB/bin:$PATH DOCKER_CONFIG=$LAB/docker-config; unset DOCKER_HOST DOCKER_CONTEXT

log() { printf '[swarm %4ss] %s\n' "$SECONDS" "$*" >&2; }
die() { log "ERROR: $*"; exit 1; }
d() { local n=$1; shift; docker -H "unix://$DIR/n$n/docker.sock" "$@"; }
pid1() { cat "$DIR/n$1/pid" 2>/dev/null || echo 0; } # of node n, as this machine sees it
alive() { grep -qzxF "SWARM_LAB_NODE=$DIR/n$1" "/proc/$(pid1 "$1")/environ" 2>/dev/null; } # and not another process with its id
inside() { local n=$1; shift; alive "$n" || die "node $n is not up"; nsenter -t "$(pid1 "$n")" -m -u -i -n -p -- "$@"; }
answers() { d "$1" version >/dev/null 2>&1; }
# shellcheck disable=SC2016 # the shell in the node expands it
running() { inside "$1" sh -c 'p=$(cat /run/docker.pid) && grep -q dockerd "/proc/$p/comm"' 2>/dev/null; }

space() { # The namespaces of node n. When its process 1 dies, the kernel ends all others; mounts and links go with them.
  local n=$1 name=node$1 child
  alive "$n" && return 0
  [ "$n" != hub ] || name=hub
  mkdir -p "$DIR/n$n"; rm -f "$DIR/n$n"/{docker.sock,ready}
  # Bash as process 1 reaps orphans. /sys must be that of the new network, with the cgroups in it.
  # shellcheck disable=SC2016 # the inner shell expands it
  SWARM_LAB_NODE=$DIR/n$n setsid unshare --net --uts --ipc --mount --pid --fork --kill-child --mount-proc bash -c '
    awk -v lab="$2/" "\$3==\"overlay\"||\$3==\"nsfs\"||index(\$2,lab)==1{print \$2}" /proc/mounts | sort -r | xargs -r umount -l 2>/dev/null
    mount -t tmpfs -o mode=755 tmpfs /run; mkdir /run/cg; mount --rbind /sys/fs/cgroup /run/cg
    umount -l /sys; mount -t sysfs sysfs /sys; mount --rbind /run/cg /sys/fs/cgroup; umount -l /run/cg
    hostname "$1"; ip link set lo up; : >"$3/ready"
    while :; do sleep 3600 & wait; done' - "$name" "$LAB" "$DIR/n$n" >"$DIR/n$n/space.log" 2>&1 </dev/null &
  for _ in $(seq 100); do [ -e "$DIR/n$n/ready" ] && break; sleep 0.1; done
  child=$(pgrep -P $! || echo 0); echo "$child" >"$DIR/n$n/pid"
  alive "$n" || die "no namespaces for node $n: $(cat "$DIR/n$n/space.log")"
  if [ "$n" = hub ]; then hub; else link "$n"; fi
}

hub() {
  inside hub sh -c "ip link add br0 type bridge && ip addr add $NET.254/24 dev br0 && ip link set br0 up"
  ip link del "$LINK" 2>/dev/null || true
  ip link add "$LINK" type veth peer name self
  ip link set self netns "$(pid1 hub)" && nsenter -t "$(pid1 hub)" -n -- ip link set self master br0 up
  ip addr add "$NET.253/24" dev "$LINK" && ip link set "$LINK" up
}

link() {
  local n=$1
  inside hub sh -c "ip link del v$n 2>/dev/null; ip link add v$n type veth peer name e$n && ip link set v$n master br0 up"
  nsenter -t "$(pid1 hub)" -n -- ip link set "e$n" netns "$(pid1 "$n")" name eth0
  inside "$n" sh -c "ip addr add $NET.$n/24 dev eth0 && ip link set eth0 up"
}

engine() {
  local n=$1 home=$DIR/n$1
  space "$n"; running "$n" && return 0
  cat >"$home/daemon.json" <<J
{ "data-root": "$home/data", "exec-root": "/run/docker", "pidfile": "/run/docker.pid", "hosts": ["unix://$home/docker.sock"],
  "cgroup-parent": "/hotpush-swarm-lab/n$n", "insecure-registries": ["$NET.0/24"], "userland-proxy": false,
  "log-driver": "json-file", "log-opts": {"max-size": "5m"} }
J
  inside "$n" rm -f /run/docker.pid /run/docker/containerd/containerd.pid
  (setsid nsenter -t "$(pid1 "$n")" -m -u -i -n -p -- dockerd --config-file "$home/daemon.json" >>"$home/dockerd.log" 2>&1 </dev/null &)
  for _ in $(seq 150); do answers "$n" && return 0; sleep 0.2; done
  tail -20 "$home/dockerd.log" >&2; die "dockerd of node $n did not come up"
}

load() { # images from the engine of docker-lab.sh; other nodes pull the rest from a registry, as real ones do
  local n=$1; shift
  d "$n" image inspect "$@" >/dev/null 2>&1 ||
    docker -H "unix://$LAB/docker.sock" save "$@" | d "$n" load -q >/dev/null
}

up() {
  local n starting=() loading=()
  mkdir -p "$DIR"; space hub
  for n in $(seq "$NODES"); do engine "$n" & starting+=($!); done
  for n in "${starting[@]}"; do wait "$n" || die "a node did not start"; done
  for n in $(seq "$NODES"); do load "$n" caddy:2 & loading+=($!); done
  load 1 node:24-trixie-slim
  for n in "${loading[@]}"; do wait "$n" || die "an image was not loaded"; done
  log "$NODES engines answer, and have their images"
}

down() {
  local n p
  for n in $(seq 9) hub; do
    alive "$n" || continue
    p=$(pid1 "$n"); kill -9 "$p"
    for _ in $(seq 100); do [ -d "/proc/$p" ] || break; sleep 0.1; done
  done
  ip link del "$LINK" 2>/dev/null || true
  for _ in $(seq 50); do
    find /sys/fs/cgroup -depth -type d -path '*/hotpush-swarm-lab*' -exec rmdir {} + 2>/dev/null || true
    [ -z "$(find /sys/fs/cgroup -maxdepth 3 -type d -name hotpush-swarm-lab 2>/dev/null)" ] && break
    sleep 0.2
  done
  rm -rf "$DIR"
}

node() { if ! { [[ ${1:-} =~ ^[1-9]$ ]] && [ "$1" -le "$NODES" ]; }; then die "which node? 1 to $NODES"; fi; }
case ${1:-} in
  up) up ;;
  kill) node "${2:-}"; inside "$2" pkill -9 -F /run/docker.pid ;;
  start) node "${2:-}"; engine "$2" ;;
  lose) node "${2:-}"; alive "$2" && kill -9 "$(pid1 "$2")" ;;
  down) down ;;
  *) die "usage: $0 up|kill n|lose n|start n|down" ;;
esac
