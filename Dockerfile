# Hotpush with what a deploy.sh of a compose project needs: git, git-lfs, gpg, ssh, the docker client, compose and buildx.
# The publishing workflow names these two images by digest.
ARG NODE_IMAGE=node:24-trixie-slim
ARG DOCKER_CLI_IMAGE=docker:28-cli

FROM ${DOCKER_CLI_IMAGE} AS docker-cli

FROM ${NODE_IMAGE} AS packages
WORKDIR /usr/local/lib/hotpush
# Builds from a checkout (src and a lock file) or from the npm package (dist).
COPY package.json package-lock.jso[n] ./
# Node comes with its image; the optional packages carry it for machines without one.
RUN install=ci; [ -e package-lock.json ] || install=install; \
    npm $install --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund

# Not Node's own image: its npm, yarn and headers would stay in the lower layers.
FROM debian:trixie-slim

# The package files and apt's index of them are 140 MB; only some base images delete them by themselves.
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates curl git git-lfs gpg libatomic1 libstdc++6 openssh-client tini \
 && apt-get clean && rm -rf /var/lib/apt/lists/* \
 && groupadd --gid 1000 node && useradd --uid 1000 --gid node --shell /bin/bash --create-home node \
# The repository is mounted on purpose and its deploy.sh runs anyway: a check of its owner would add nothing.
 && git config --system --add safe.directory '*' \
# On a server, `hotpush init` mounts the machine's /etc/gitconfig there.
 && git config --system include.path gitconfig.machine \
# Either of the two users can write the state and the spool; a new volume takes its owner from here.
 && install -d -o node -g node -m 700 /var/lib/hotpush /run/hotpush && install -d -o node -g node -m 2775 /run/live \
 && ln -s /usr/local/lib/hotpush/bin/hotpush /usr/local/bin/hotpush

# Docker's own builds: Debian's compose and buildx are years behind.
COPY --from=docker-cli /usr/local/bin/docker /usr/local/bin/
COPY --from=docker-cli /usr/local/libexec/docker/cli-plugins/docker-buildx /usr/local/libexec/docker/cli-plugins/docker-compose \
     /usr/local/libexec/docker/cli-plugins/
COPY --from=packages /usr/local/bin/node /usr/local/bin/

WORKDIR /usr/local/lib/hotpush
COPY --from=packages /usr/local/lib/hotpush ./
COPY LICENSE ./
COPY examples ./examples
COPY bin ./bin
COPY sr[c] ./src/
COPY dis[t] ./dist/

# Docker's client keeps its records of builds in /tmp, so that the root file system can be read-only.
ENV NODE_ENV=production NODE_COMPILE_CACHE=/usr/local/lib/hotpush/.compiled STATE_PATH=/var/lib/hotpush BUILDX_CONFIG=/tmp/buildx
# The checkout may be that of a root whose files others cannot read. Fills the compile cache for root, node and the user of
# `front` on a server (Node keeps one per user), so that a start is fast and needs less memory even on a read-only file
# system. Then starts without a secret, to check the image: that must exit with code 78.
RUN find . ! -perm -go=r -exec chmod go=rX {} + && mkdir -m 1777 .compiled && node bin/compile.js --strict \
 && for id in 1000 9000; do setpriv --reuid $id --regid $id --clear-groups node bin/compile.js --strict || exit; done \
 && chmod 755 .compiled \
 && { bin/hotpush 2>/dev/null; test $? -eq 78; }

EXPOSE 9000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --start-interval=500ms \
  CMD ["/usr/local/lib/hotpush/bin/health"]
LABEL org.opencontainers.image.title="Hotpush" \
      org.opencontainers.image.description="A self-hosted deployment webhook: push to main, and the new version is live" \
      org.opencontainers.image.licenses="MIT"

# tini is process 1: it passes signals on and reaps what deploy scripts leave behind.
ENTRYPOINT ["tini", "--", "hotpush"]
