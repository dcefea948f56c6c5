#!/usr/bin/env bash
# A server of its own on this machine, as a new user has it: Docker, git and npm, and nothing of Hotpush. It has its own
# processes, mounts, network, host name and Docker engine, and a copy-on-write view of this machine's files, without
# Docker's settings, Hotpush and all projects. So it neither finds nor harms what the machine has.
#
#   clean-server.sh serve     start one, print "ready <address> <process>", and end it when standard input ends
#   clean-server.sh base      only make what each start copies: an engine with base images and layers from the network
#   clean-server.sh sweep     remove what is left of servers that were killed; each start does so too
#
# With BARE=1 it is a new Debian from a provider: nothing but Debian's base and sshd, in which nobody may sign in yet. apt reaches
# Debian's packages, and the engine that gets installed finds the base images and layers, as if it had downloaded them.
#
# Its files are in /proc/<process>/root. To run a command in it: nsenter --all --target <process> <command>
# The base takes a minute or two. It is made again when the Dockerfile, the packages or a base image change.
# Environment: LAB (of docker-lab.sh), DIR (default: a directory in the temporary directory), IMAGE_STORE (containerd, the default,
# or overlay2)
set -euo pipefail
BARE=${BARE:-}; DIR=${DIR:-${TMPDIR:-/tmp}/hotpush-clean-lab}; LAB=${LAB:-${TMPDIR:-/tmp}/hotpush-lab}
IMAGE_STORE=${IMAGE_STORE:-containerd}
source=$(dirname "$(readlink -f "$0")")/../..
images=(debian:trixie-slim node:24-trixie-slim docker:28-cli caddy:2)
layers=(overlay2); store=containerd/daemon/io.containerd
[ "$IMAGE_STORE" != containerd ] || layers=("$store.snapshotter.v1.overlayfs/snapshots" "$store.content.v1.content/blobs")

log() { printf '[clean %4ss] %s\n' "$SECONDS" "$*" >&2; }
die() { log "ERROR: $*"; exit 1; }

serve() { # [the directory of a base, which is then made in it]
  local slot mtu device
  mkdir -p "$DIR"; exec 6>>"$DIR/slots.lock"; flock 6
  sweep
  device=$(ip -o route get 192.0.2.1 2>/dev/null | sed -n 's/.* dev \([^ ]*\).*/\1/p')
  mtu=$(cat "/sys/class/net/$device/mtu" 2>/dev/null || echo 1500)
  for slot in $(seq 0 63); do ip netns add "hpclean$slot" 2>/dev/null && break; done
  # The lock is held by all processes of the server, and ends with them.
  mkdir -p "$DIR/$slot/srv" "$DIR/$slot/varlib"; exec 9>>"$DIR/$slot/lock"; flock --nonblock 9 || die "no server is free"
  exec 6>&-
  connect "$slot" "$mtu"
  if [ -n "${1:-}" ]; then mkdir "$DIR/$slot/varlib/docker"; else copy_base "$DIR/$slot/varlib/docker"; fi
  [ -z "$BARE" ] || make_bare
  nsenter --net="/run/netns/hpclean$slot" unshare --mount --uts --ipc --pid --fork --kill-child --propagation private \
    bash "$0" inside "$slot" "$mtu" || log "server $slot has failed"
  exec 9>&-
  [ -z "${1:-}" ] || mv "$DIR/$slot/varlib/docker" "$1"
  flock "$DIR/slots.lock" bash "$0" sweep
}

sweep() {
  local lock
  for lock in "$DIR"/*/lock; do
    [ ! -e "$lock" ] || flock --nonblock "$lock" bash "$0" forget "$(basename "$(dirname "$lock")")" || true
  done
}

forget() { # number
  local table rule
  ip link del "hpclean$1" 2>/dev/null || true
  ip netns del "hpclean$1" 2>/dev/null || true
  for table in nat filter; do
    iptables --wait -t "$table" -S | grep -- "-comment hpclean$1 " | sed 's/^-A/-D/' | while read -r rule; do
      # shellcheck disable=SC2086 # iptables prints its own arguments
      iptables --wait -t "$table" $rule
    done
  done
  for _ in $(seq 50); do
    find /sys/fs/cgroup -depth -type d -path "*/hpclean$1*" -exec rmdir {} + 2>/dev/null || true
    [ -z "$(find /sys/fs/cgroup -maxdepth 3 -type d -name "hpclean$1")" ] && break
    sleep 0.1
  done
  rm -rf "${DIR:?}/$1"
}

connect() { # number, MTU: to this machine, and through it to the world
  local name=hpclean$1
  ip link del "$name" 2>/dev/null || true
  ip link add "$name" mtu "$2" type veth peer name eth0 mtu "$2" netns "$name"
  ip addr add "198.18.$1.1/30" dev "$name"; ip link set "$name" up
  nsenter --net="/run/netns/$name" sh -ec "ip link set lo up; ip addr add 198.18.$1.2/30 dev eth0; ip link set eth0 up
    ip route add default via 198.18.$1.1"
  [ "$(cat /proc/sys/net/ipv4/ip_forward)" = 1 ] || echo 1 >/proc/sys/net/ipv4/ip_forward
  iptables --wait -t nat -A POSTROUTING -s "198.18.$1.2" ! -o "$name" -m comment --comment "$name" -j MASQUERADE
  iptables --wait -I FORWARD -i "$name" -m comment --comment "$name" -j ACCEPT
  iptables --wait -I FORWARD -o "$name" -m comment --comment "$name" -j ACCEPT
}

inside() { # number, MTU: as process 1, after which the kernel ends all others, and the mounts go with them
  local root=/mnt process path from to lower=/ disks=(srv var/lib)
  [ -z "$BARE" ] || { lower=$DIR/bare; disks=(srv var/lib/docker); }
  read -r process _ </proc/self/stat # /proc is still the machine's.
  mount -t tmpfs -o mode=755 tmpfs "$root"; mkdir "$root/up" "$root/work" "$root/root"
  mount -t overlay -o "lowerdir=$lower,upperdir=$root/up,workdir=$root/work" overlay "$root/root"
  cd "$root/root"
  for path in etc/hotpush etc/docker opt/hotpush usr/bin/hotpush usr/local/bin/hotpush root/.docker root/.gitconfig \
    root/.bashrc root/.profile root/.bash_profile \
    root/.config/hotpush root/.local/state/hotpush; do rm -rf "$path"; done
  mkdir -p tmp run home srv var/lib var/www proc sys dev
  mount --rbind /dev dev; mount -t proc proc proc; mount -t sysfs sysfs sys; mount --rbind /sys/fs/cgroup sys/fs/cgroup
  for path in tmp run home var/www; do mount -t tmpfs -o mode=755 tmpfs "$path"; done
  chmod 1777 tmp
  # State and checkouts are on a disk, as on a real server.
  for path in "${disks[@]}"; do mkdir -p "$path"; mount --bind "$DIR/$1/${path/var\/lib/varlib}" "$path"; done
  [ -n "$BARE" ] || programs | while read -r from to; do
    mkdir -p "$(dirname "$to")"; rm -f "$to"; : >"$to"; mount --bind "$from" "$to"
  done
  hostname "server$1"; echo "server$1" >etc/hostname
  printf '%s\n' '127.0.0.1 localhost' '::1 localhost' "127.0.1.1 server$1" >etc/hosts
  mkdir -p etc/docker tmp/machine
  cat >etc/docker/daemon.json <<J
{ "mtu": $2, "default-network-opts": {"bridge": {"com.docker.network.driver.mtu": "$2"}}, "cgroup-parent": "/hpclean$1",
  "log-driver": "json-file", "log-opts": {"max-size": "5m"}, "features": {"containerd-snapshotter": $([ "$IMAGE_STORE" = containerd ] && echo true || echo false)} }
J
  pivot_root . tmp/machine; cd /; umount -l /tmp/machine; rmdir /tmp/machine
  export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
  unset DOCKER_HOST DOCKER_CONFIG DOCKER_CONTEXT
  if [ -n "$BARE" ]; then sign_in; else start_engine; fi
  echo "ready 198.18.$1.2 $process"
  # Bash reaps orphans as long as it waits.
  cat <&8 >/dev/null & wait $!
}

sign_in() { # is possible over ssh
  exec 8<&0
  # In the place of systemd. Debian's own script without it raises limits, which this machine may not be allowed to.
  printf '%s\n' '#!/bin/sh' 'case $* in *docker) setsid dockerd >/var/log/dockerd.log 2>&1 </dev/null & ;; esac' >/usr/local/bin/systemctl
  chmod 755 /usr/local/bin/systemctl
  ssh-keygen -q -A >/dev/null; mkdir -p /run/sshd; /usr/sbin/sshd 8<&-
  for _ in $(seq 50); do : 2>/dev/null </dev/tcp/127.0.0.1/22 && return; sleep 0.1; done
  die "sshd did not come up"
}

start_engine() {
  getent group docker >/dev/null || groupadd --system docker # As Docker's package does.
  exec 8<&0
  # BuildKit's quick way to compare two layers fails on these mounts, and keeps a lock that the slower one needs.
  BUILDKIT_DEBUG_FORCE_OVERLAY_DIFF=0 dockerd >/var/log/dockerd.log 2>&1 </dev/null 8<&- &
  for _ in $(seq 300); do docker version >/dev/null 2>&1 && break; kill -0 $! 2>/dev/null || break; sleep 0.1; done
  docker version >/dev/null 2>&1 || { tail -20 /var/log/dockerd.log >&2; die "dockerd did not come up"; }
}

programs() { # of the lab, if it is there, and where the server has them; else the machine's own are used
  local file
  [ -e "$LAB/engine.ok" ] || return 0
  for file in "$LAB"/bin/*; do echo "$(readlink -f "$file") usr/local/bin/${file##*/}"; done | grep -v caddy
  for file in "$LAB"/docker-config/cli-plugins/*; do
    echo "$(readlink -f "$file") usr/local/libexec/docker/cli-plugins/${file##*/}"
  done
}

copy_base() { # to a directory that is not there yet
  local base
  mkdir -p "$DIR"
  exec 7>>"$DIR/base.lock"; flock 7
  base=$DIR/base-$(base_key)
  [ -d "$base" ] || make_base "$base"
  # No engine writes to a file of a layer, so links will do; all else are databases.
  mkdir "$1"; (cd "$base" && cp -a --link --parents "${layers[@]}" "$1" && tar -c "${layers[@]/#/--exclude=./}" . | tar -xC "$1")
  exec 7>&-
}

make_bare() {
  local container part=$DIR/bare.part
  exec 7>>"$DIR/base.lock"; flock 7
  if [ ! -d "$DIR/bare" ]; then
    log "making a Debian with sshd"
    rm -rf "$part"; mkdir "$part"
    container=$(docker create debian:trixie-slim true)
    docker export "$container" | tar -xC "$part"; docker rm "$container" >/dev/null
    rm -f "$part"/dev/null; mknod -m 666 "$part/dev/null" c 1 3; cp /etc/resolv.conf "$part/etc/resolv.conf"
    chroot "$part" env DEBIAN_FRONTEND=noninteractive sh -ec 'apt-get -qq update
      apt-get -qq -y --no-install-recommends install openssh-server >/dev/null; apt-get clean
      rm -rf /var/lib/apt/lists/* /etc/ssh/ssh_host_* /root/.ssh' >&2
    mv "$part" "$DIR/bare"
  fi
  exec 7>&-
}

base_key() {
  { echo "$IMAGE_STORE"; docker image inspect --format '{{.Id}}' "${images[@]}" 2>/dev/null || true
    cat "$source/Dockerfile" "$source/package.json" "$source/package-lock.json"; } | sha256sum | cut -c1-12
}

make_base() {
  local answer process
  log "making an engine with images and layers from the network; later starts copy it"
  docker version >/dev/null 2>&1 || die "no Docker answers from which it could take base images"
  rm -rf "$1.part"
  coproc SERVER { BARE="" bash "$0" serve "$1.part" 7>&-; }
  local server=$SERVER_PID in=${SERVER[1]} out=${SERVER[0]}
  read -r answer _ process <&"$out" || true
  [ "${answer:-}" = ready ] || die "no engine for the base"
  in_base() { nsenter --all --target "$process" env -i HOME=/root PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin "$@"; }
  docker image inspect "${images[@]}" >/dev/null 2>&1 || printf '%s\n' "${images[@]}" | xargs -n1 docker pull --quiet >&2
  docker save "${images[@]}" | in_base docker load --quiet >&2
  tar -cC "$source" --owner=0 --group=0 --exclude=./node_modules --exclude=./.git . | in_base docker build --quiet --tag base - >&2
  in_base docker rmi base >&2
  in_base sh -ec 'pkill -x dockerd; while pgrep -x dockerd >/dev/null; do sleep 0.1; done'
  exec {in}>&-
  wait "$server" || die "the base was not made"
  rm -rf "$DIR"/base-*[0-9a-f]
  mv "$1.part" "$1"
}

case ${1:-} in
  serve) serve "${2:-}" ;;
  base) mkdir -p "$DIR"; exec 7>>"$DIR/base.lock"; flock 7; [ -d "$DIR/base-$(base_key)" ] || make_base "$DIR/base-$(base_key)" ;;
  sweep) sweep ;;
  inside) inside "$2" "$3" ;;
  forget) forget "$2" ;;
  *) die "usage: $0 serve|base|sweep" ;;
esac
