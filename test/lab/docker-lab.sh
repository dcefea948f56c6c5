#!/usr/bin/env bash
# A real Docker (engine, compose, buildx), Caddy and stand-ins of the base images, for the tests, if root and Debian's
# packages are at hand but no registry of images. Everything is unpacked under $LAB and removed again by `down`.
#
#   docker-lab.sh up      start; the first time takes about a minute, later ones a second
#   docker-lab.sh warm    build the layers of test images that come from the network, so that they are in the build cache
#   docker-lab.sh env     prints variables to `eval` in a shell: DOCKER_HOST, DOCKER_CONFIG, PATH
#   docker-lab.sh status
#   docker-lab.sh stop    remove the containers and networks of this engine and stop it; keep what was downloaded
#   docker-lab.sh down    stop, and delete $LAB
#
# Environment: LAB (default: a directory in the temporary directory), SUITES (Debian suites to take the engine from,
# the first whose programs run here wins), NODE_MAJORS, MIRROR (Debian mirror; default: the one apt uses here), LIVE_RESTORE
# (true: containers survive the engine; not together with a Swarm), IMAGE_STORE (containerd, as a new Docker 29 has it, or overlay2,
# as one that was upgraded; default: the one that the lab has, else containerd)
set -euo pipefail
LAB=${LAB:-${TMPDIR:-/tmp}/hotpush-lab}
SUITES=${SUITES:-"sid trixie"}
NODE_MAJORS=${NODE_MAJORS:-"24"}
MIRROR=${MIRROR:-$(sed -n 's/^URIs: *//p' /etc/apt/sources.list.d/*.sources 2>/dev/null | head -1)}
MIRROR=${MIRROR:-$(awk '$1=="deb"{print ($2 ~ /^\[/) ? $3 : $2; exit}' /etc/apt/sources.list)}
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg
SOCK=$LAB/docker.sock; PIDF=$LAB/dockerd.pid
default=containerd; [ ! -e "$LAB/daemon.json" ] || grep -q '"containerd-snapshotter": true' "$LAB/daemon.json" || default=overlay2
IMAGE_STORE=${IMAGE_STORE:-$default}
export DEBIAN_FRONTEND=noninteractive

log() { printf '[lab %4ss] %s\n' "$SECONDS" "$*" >&2; }
die() { log "ERROR: $*"; exit 1; }
alive() { [ -s "$PIDF" ] && kill -0 "$(cat "$PIDF")" 2>/dev/null && grep -qa dockerd "/proc/$(cat "$PIDF")/comm" && ! grep -q '^State:.*Z' "/proc/$(cat "$PIDF")/status"; }
useenv() { export DOCKER_HOST=unix://$SOCK DOCKER_CONFIG=$LAB/docker-config PATH=$LAB/bin:$PATH; }

apt_private() { # suite, then apt-get arguments: an apt with its own lists/cache, nothing of the host's touched
  local s=$1; shift; local d=$LAB/apt-$s
  mkdir -p "$d"/lists/partial "$d"/cache/archives/partial
  echo "deb [signed-by=$KEYRING] $MIRROR $s main" > "$d/sources.list"
  apt-get -q -o Dir::Etc::sourcelist="$d/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$d/lists" \
    -o Dir::Cache="$d/cache" -o Dir::State::status=/dev/null -o Acquire::Languages=none -o APT::Sandbox::User=root "$@"
}

host_packages() { # iptables, mmdebstrap, iproute2 and curl on the host; runc's library; all else is only unpacked under $LAB
  local need=()
  command -v ip >/dev/null || need+=(iproute2)
  command -v iptables >/dev/null || need+=(iptables)
  command -v mmdebstrap >/dev/null || need+=(mmdebstrap)
  [ -e /usr/lib/x86_64-linux-gnu/libseccomp.so.2 ] || need+=(libseccomp2)
  command -v curl >/dev/null || need+=(curl)
  [ ${#need[@]} = 0 ] && return 0
  apt-get -qq update; apt-get -qq -y --no-install-recommends install "${need[@]}" >/dev/null
}

engine() { # unpack dockerd, containerd, docker, compose, buildx, caddy of the newest suite whose binaries run on this glibc
  [ -e "$LAB/engine.ok" ] && return 0
  local s
  for s in $SUITES; do
    rm -rf "${LAB:?}/pkg" "${LAB:?}/bin"; mkdir -p "$LAB/debs-$s" "$LAB/pkg" "$LAB/bin"
    apt_private "$s" update >/dev/null 2>"$LAB/apt-$s.err" || { log "no lists for $s"; continue; }
    (cd "$LAB/debs-$s" && apt_private "$s" download docker.io docker-cli docker-compose docker-buildx containerd caddy tini >/dev/null) || continue
    # runc links libseccomp and needs a new glibc in sid: the host suite's runc (1.1.5) does
    (cd "$LAB/debs-$s" && apt-get -qq -o APT::Sandbox::User=root download runc)
    local d; for d in "$LAB/debs-$s"/*.deb; do dpkg -x "$d" "$LAB/pkg"; done
    local b
    for b in usr/sbin/dockerd usr/sbin/docker-proxy usr/bin/docker usr/bin/containerd usr/bin/containerd-shim-runc-v2 usr/bin/docker-init \
             usr/bin/ctr usr/sbin/runc usr/bin/runc usr/bin/caddy usr/bin/tini usr/bin/tini-static; do
      [ -f "$LAB/pkg/$b" ] && ln -sf "../pkg/$b" "$LAB/bin/${b##*/}"
    done
    # Debian's docker-init is a link to tini-static, which newer tini packages no longer carry
    if [ -f "$LAB/pkg/usr/bin/tini-static" ]; then b=tini-static; else b=tini; fi
    ln -sf "../pkg/usr/bin/$b" "$LAB/bin/docker-init"
    mkdir -p "$LAB/docker-config/cli-plugins"; echo '{}' > "$LAB/docker-config/config.json"
    for b in docker-compose docker-buildx; do
      local p; p=$(find "$LAB/pkg" -path "*cli-plugins/$b" -type f | head -1); [ -n "$p" ] && ln -sf "$p" "$LAB/docker-config/cli-plugins/$b"
    done
    if ( useenv; dockerd --version && containerd --version && runc --version && docker compose version && docker buildx version && caddy version ) >"$LAB/versions.txt" 2>&1
    then log "engine from $s: $(tr '\n' ';' <"$LAB/versions.txt" | cut -c1-220)"; touch "$LAB/engine.ok"; return 0; fi
    log "binaries of $s do not run here ($(tail -1 "$LAB/versions.txt")); trying the next suite"
  done
  die "no suite of '$SUITES' gave a working engine"
}

remove_networks() { # of an engine that was killed, too: its routes and rules would take the packets of the next one's networks
  pgrep -x dockerd >/dev/null && return 0
  local l bridge='br-[0-9a-f]\{12\}'
  for l in dkrlab0 docker_gwbridge $(ip -o link show type bridge | grep -o "\b$bridge\b"); do ip link del "$l" 2>/dev/null || true; done
  # Those of the machine's owner stay.
  iptables-save | sed -e '/^-A DOCKER-USER /b' -e "/ \($bridge\|dkrlab0\) /d" \
    -e '/^-A PREROUTING -d 127\.0\.0\.1\/32 ! -i lo -p tcp -m tcp --dport [0-9]* -j DROP$/d' | iptables-restore
}

start() {
  alive && return 0
  [ -e "$LAB/data" ] || remove_networks
  rm -f "$PIDF" # One that was killed has left it, and may still be there as a zombie.
  pgrep -x dockerd >/dev/null && log "WARNING: another dockerd runs here; both write the same iptables chains - stop it if networks misbehave"
  local mtu; mtu=$(cat /sys/class/net/"$(ip -o route get 1.1.1.1 2>/dev/null | sed -n 's/.* dev \([^ ]*\).*/\1/p' | head -1)"/mtu 2>/dev/null || echo 1500)
  mkdir -p "$LAB/data" "$LAB/exec"
  ip link show dkrlab0 >/dev/null 2>&1 || { ip link add dkrlab0 type bridge; ip addr add 172.31.0.1/24 dev dkrlab0; ip link set dkrlab0 up; }
  # Without docker-proxy, the kernel forwards a request from this machine like one from outside, which costs a quarter less.
  # So Docker's default way for requests from the host itself is not tested here.
  cat > "$LAB/daemon.json" <<J
{ "data-root": "$LAB/data", "exec-root": "$LAB/exec", "pidfile": "$PIDF", "hosts": ["unix://$SOCK"],
  "bridge": "dkrlab0", "mtu": $mtu, "default-network-opts": {"bridge": {"com.docker.network.driver.mtu": "$mtu"}},
  "default-address-pools": [{"base": "172.30.0.0/16", "size": 24}], "log-driver": "json-file", "log-opts": {"max-size": "5m"}, "userland-proxy": false, "live-restore": ${LIVE_RESTORE:-false},
  "features": {"containerd-snapshotter": $([ "$IMAGE_STORE" = containerd ] && echo true || echo false)} }
J
  ( useenv; unset DOCKER_HOST; setsid nohup dockerd --config-file "$LAB/daemon.json" >"$LAB/dockerd.log" 2>&1 </dev/null & )
  for _ in $(seq 150); do ( useenv; docker version >/dev/null 2>&1 ) && { log "dockerd answers (pid $(cat "$PIDF"))"; return 0; }; sleep 0.2; done
  tail -20 "$LAB/dockerd.log" >&2; die "dockerd did not come up"
}

rootfs() { # Debian trixie minbase, as a tar to import
  [ -s "$LAB/trixie.tar" ] && return 0
  # The image needs this machine's settings to reach the mirror and the registry: apt's settings and local CAs.
  { apt-config dump | grep -E '^Acquire::(http|https)::Proxy |^Acquire::Check-(Valid-Until|Date) ' || true
    echo 'APT::Install-Recommends "false";'; echo 'Acquire::Languages "none";'; } > "$LAB/apt.conf"
  # Its filter is written in Python: Debian's own, for a version manager's stands before each start with dozens of processes.
  # shellcheck disable=SC2016 # mmdebstrap gives its hooks the root directory as $1
  TMPDIR=$LAB PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin mmdebstrap --mode=root --variant=minbase --include=ca-certificates --keyring="$KEYRING" --aptopt="$LAB/apt.conf" \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --customize-hook='cp /usr/local/share/ca-certificates/*.crt "$1/usr/local/share/ca-certificates/" 2>/dev/null || true' \
    --customize-hook='cp /etc/ssl/certs/ca-certificates.crt "$1/etc/ssl/certs/" 2>/dev/null || true' \
    --skip=output/dev --format=tar trixie "$LAB/trixie.tar.part" "$MIRROR" >"$LAB/mmdebstrap.log" 2>&1 ||
    { tail -5 "$LAB/mmdebstrap.log" >&2; die mmdebstrap; }
  mv "$LAB/trixie.tar.part" "$LAB/trixie.tar"
}

nodepkg() { # node binaries + npm from the npm registry (the `node` package's own platform package)
  local m d
  for m in $NODE_MAJORS; do
    d=$LAB/node-$m; [ -x "$d/bin/node" ] && continue
    rm -rf "$d.t" "$d"; mkdir -p "$d.t" "$d/bin" "$d/lib/node_modules"
    ( cd "$d.t"; echo '{"private":true}' > package.json; npm i --silent --no-audit --no-fund "node@$m" npm@11 >/dev/null
      cp "$(readlink -f node_modules/node/bin/node)" "$d/bin/node"; cp -r node_modules/npm "$d/lib/node_modules/npm" )
    ln -s ../lib/node_modules/npm/bin/npm-cli.js "$d/bin/npm"; ln -s ../lib/node_modules/npm/bin/npx-cli.js "$d/bin/npx"; ln -s node "$d/bin/nodejs"; rm -rf "$d.t"
  done
}

have() { ( useenv; docker image inspect "$1" >/dev/null 2>&1 ); }
images() { # side by side: they share nothing but the layers of the first one
  useenv
  have debian:trixie-slim || docker import -c 'CMD ["bash"]' -c 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' "$LAB/trixie.tar" debian:trixie-slim >/dev/null
  docker tag debian:trixie-slim debian:trixie
  local m p builds=()
  for m in $NODE_MAJORS; do node_image "$m" & builds+=($!); done
  caddy_image & builds+=($!)
  cli_image & builds+=($!)
  for p in "${builds[@]}"; do wait "$p" || die "an image was not built"; done
}

node_image() { # the ENV is for a registry behind a private CA, and harmless elsewhere
  have "node:$1-trixie-slim" || docker build -q -t "node:$1-trixie-slim" -t "node:$1" -f - "$LAB/node-$1" >/dev/null <<'D'
FROM debian:trixie-slim
RUN groupadd --gid 1000 node && useradd --uid 1000 --gid node --shell /bin/bash --create-home node
COPY . /usr/local/
ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
CMD ["node"]
D
}

caddy_image() {
  have caddy:2 && return 0
  mkdir -p "$LAB/ctx-caddy"; cp -L "$LAB/bin/caddy" "$LAB/ctx-caddy/caddy"
  docker build -q -t caddy:2 -f - "$LAB/ctx-caddy" >/dev/null <<'D'
FROM debian:trixie-slim
RUN mkdir -p /config/caddy /data/caddy /etc/caddy /usr/share/caddy && printf ':80\nrespond "caddy works"\n' > /etc/caddy/Caddyfile
COPY caddy /usr/bin/caddy
ENV XDG_CONFIG_HOME=/config XDG_DATA_HOME=/data
EXPOSE 80 443 443/udp 2019
WORKDIR /srv
CMD ["caddy","run","--config","/etc/caddy/Caddyfile","--adapter","caddyfile"]
D
}

cli_image() {
  have docker:28-cli && return 0
  local c=$LAB/ctx-cli
  mkdir -p "$c/libexec/docker/cli-plugins" "$c/bin"
  cp -L "$LAB/bin/docker" "$c/bin/"; cp -L "$LAB"/docker-config/cli-plugins/* "$c/libexec/docker/cli-plugins/"
  docker build -q -t docker:28-cli -t docker:cli -f - "$c" >/dev/null <<'D'
FROM debian:trixie-slim
COPY . /usr/local/
CMD ["docker"]
D
}

warm() { # with the Docker that answers already, else the lab's
  docker version >/dev/null 2>&1 || useenv
  local here p builds=()
  here=$(dirname "$(readlink -f "$0")")
  docker build -q "$here/../.." & builds+=($!)
  docker build -q "$here/shop/postgres" & builds+=($!)
  sed '/^COPY/,$d' "$here/shop/Dockerfile" | docker build -q - & builds+=($!)
  for p in "${builds[@]}"; do wait "$p" || log "an image was not built ahead; the test that needs it tries again"; done
}

case ${1:-up} in
  up)
    mkdir -p "$LAB"; host_packages
    rootfs & r=$!; nodepkg & n=$!
    engine; start
    wait $r || die "rootfs failed, see $LAB/mmdebstrap.log"; log "rootfs ready"
    wait $n || die "npm i node failed"
    images; log "images: $( useenv; docker images --format '{{.Repository}}:{{.Tag}}' | sort | tr '\n' ' ')"
    log "ready: eval \"\$($0 env)\"" ;;
  warm) warm ;;
  env) echo "export DOCKER_HOST=unix://$SOCK DOCKER_CONFIG=$LAB/docker-config PATH=$LAB/bin:\$PATH" ;;
  status) if alive; then echo "running, pid $(cat "$PIDF")"; cat "$LAB/versions.txt"; else echo stopped; exit 1; fi ;;
  stop|down)
    if alive; then useenv
      docker swarm leave --force >/dev/null 2>&1 || true
      docker ps -aq | xargs -r docker rm -fv >/dev/null || true
      docker network prune -f >/dev/null || true
      p=$(cat "$PIDF"); kill "$p"; for _ in $(seq 100); do kill -0 "$p" 2>/dev/null || break; sleep 0.2; done; kill -0 "$p" 2>/dev/null && kill -9 "$p"
    fi
    remove_networks
    # the DOCKER* iptables chains stay (another dockerd may use them); the next dockerd rebuilds them
    if [ "${1}" = down ]; then
      awk -v l="$LAB/" 'index($2,l)==1{print $2}' /proc/mounts | sort -r | xargs -r -n1 umount -l || true
      rm -rf "$LAB"
    fi; log "${1}: done" ;;
  *) die "usage: $0 up|warm|env|status|stop|down" ;;
esac
