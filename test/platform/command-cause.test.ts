import assert from "node:assert/strict";
import { test } from "node:test";
import { causeIn } from "../../src/platform/command-cause.ts";

const digest = "46e370a99ac4cda2ee4b33855ba4c0bf4cd0cdec6b4497c988f1b9da81432a3d";
const excerpt =
  "------\nDockerfile:2\n\n--------------------\n\n   2 | >>> RUN make\n\n--------------------\n\n";
const frontier =
  "failed to set up container networking: driver failed programming external connectivity on endpoint";
const checksum =
  "failed to compute cache key: failed to calculate checksum of ref d2b94768-1fd6::z6cpp7e3en8";

/** What docker 28.5, compose 2.40 and buildkit print at the end, and the cause in it. */
const outputs: Readonly<Record<string, readonly [output: string, cause: string | null]>> = {
  "a command of a Dockerfile": [
    `#6 0.155 one\n------\n > [2/3] RUN make:\n0.155 one\n0.159 ls: cannot access '/no-such': No such file or directory\n0.160 two\n${excerpt}failed to solve: process "/bin/sh -c make" did not complete successfully: exit code: 2\n\n`,
    `failed to solve: process "/bin/sh -c make" did not complete successfully: exit code: 2: ls: cannot access '/no-such': No such file or directory`,
  ],
  "a command of one of several services, without a complaint": [
    `------\n > [a 2/2] RUN exit 3:\n1.222 from a\n${excerpt}target a: failed to solve: process "/bin/sh -c exit 3" did not complete successfully: exit code: 3\n`,
    `failed to solve: process "/bin/sh -c exit 3" did not complete successfully: exit code: 3: from a`,
  ],
  "a full disk in a build": [
    `------\n > [stage-0 2/2] RUN dd:\n0.216 dd: error writing '/t/x': No space left on device\n0.216 2+0 records in\n${excerpt}failed to solve: process "/bin/sh -c dd" did not complete successfully: exit code: 1\n`,
    `failed to solve: process "/bin/sh -c dd" did not complete successfully: exit code: 1: dd: error writing '/t/x': No space left on device. Free some space: hotpush prune`,
  ],
  "a file that is not in the context": [
    `#7 ERROR: ${checksum}: "/missing.txt": not found\n------\n > [2/2] COPY missing.txt /:\n${excerpt}failed to solve: ${checksum}: "/missing.txt": not found\n`,
    `failed to solve: "/missing.txt": not found. Check that it is in git, and not in .dockerignore`,
  ],
  "a typing error in a Dockerfile": [
    "failed to solve: dockerfile parse error on line 2: unknown instruction: RUNN (did you mean RUN?)\n",
    "failed to solve: dockerfile parse error on line 2: unknown instruction: RUNN (did you mean RUN?)",
  ],
  "no Dockerfile": [
    "#2 transferring dockerfile: 2B done\n#2 DONE 0.0s\nfailed to solve: failed to read dockerfile: open Dockerfile: no such file or directory\n",
    "failed to solve: failed to read dockerfile: open Dockerfile: no such file or directory",
  ],
  "a Dockerfile that may not be read": [
    "failed to solve: the Dockerfile cannot be empty\n\n",
    "failed to solve: the Dockerfile cannot be empty. Check that the owner of the checkout may read it",
  ],
  "a directory of the context that may not be read": [
    "#6 ERROR: error from sender: open /srv/shop/data: permission denied\n------\n > [internal] load build context:\n------\nfailed to solve: error from sender: open /srv/shop/data: permission denied\n",
    "failed to solve: error from sender: open /srv/shop/data: permission denied. Let the owner of the checkout read it, or list it in .dockerignore",
  ],
  "a base image that is not there": [
    `${excerpt}failed to solve: 127.0.0.1:5000/team/app:1: failed to resolve source metadata for 127.0.0.1:5000/team/app:1: 127.0.0.1:5000/team/app:1: not found\n`,
    "failed to solve: 127.0.0.1:5000/team/app:1: not found. Check the image's name, and that it is pushed",
  ],
  "a private base image": [
    "failed to solve: 127.0.0.1:5000/team/app:1: failed to resolve source metadata for 127.0.0.1:5000/team/app:1: unexpected status from HEAD request to http://127.0.0.1:5000/v2/team/app/manifests/1: 401 Unauthorized\n",
    "failed to solve: 127.0.0.1:5000/team/app:1: unexpected status from HEAD request to http://127.0.0.1:5000/v2/team/app/manifests/1: 401 Unauthorized. Check its name. For a private image run, as the owner of the checkout: docker login",
  ],
  "a private image": [
    " web Pulling \n web Error unauthorized\n db  Interrupted\nError response from daemon: unauthorized\n",
    "unauthorized. Check its name. For a private image run, as the owner of the checkout: docker login",
  ],
  "an image that Docker Hub does not have": [
    " web Pulling \n web Error pull access denied for octo/shop, repository does not exist or may require 'docker login': denied: requested access to the resource is denied\nError response from daemon: pull access denied for octo/shop, repository does not exist or may require 'docker login': denied: requested access to the resource is denied\n",
    "pull access denied for octo/shop, repository does not exist or may require 'docker login': denied: requested access to the resource is denied. Check its name. For a private image run, as the owner of the checkout: docker login",
  ],
  "a tag that is not there": [
    "Error response from daemon: manifest for ghcr.io/octo/shop:2 not found: manifest unknown: manifest unknown\n",
    "manifest for ghcr.io/octo/shop:2 not found: manifest unknown: manifest unknown. Check the image's name, and that it is pushed",
  ],
  "a registry without an address": [
    ' web Pulling \n web Error Get "https://ghcr.io/v2/": dial tcp: lookup ghcr.io on 10.0.0.1:53: no such host\nError response from daemon: Get "https://ghcr.io/v2/": dial tcp: lookup ghcr.io on 10.0.0.1:53: no such host\n',
    'Get "https://ghcr.io/v2/": dial tcp: lookup ghcr.io on 10.0.0.1:53: no such host',
  ],
  "an env file that is not there": [
    "env file /srv/shop/app.env not found: stat /srv/shop/app.env: no such file or directory\n",
    "env file /srv/shop/app.env not found",
  ],
  "an env file that may not be read": [
    "open /srv/shop/app.env: permission denied\n",
    "open /srv/shop/app.env: permission denied. Let the owner of the checkout read it, or list it in .dockerignore",
  ],
  "a variable without a value": [
    'time="2026-11-28T19:10:46Z" level=warning msg="The \\"Y\\" variable is not set. Defaulting to a blank string."\nerror while interpolating services.web.image: required variable X is missing a value: must be set\n',
    "error while interpolating services.web.image: required variable X is missing a value: must be set",
  ],
  "a key that compose does not know": [
    "validating /srv/shop/compose.yaml: services.web additional properties 'imagee' not allowed\n",
    "validating /srv/shop/compose.yaml: services.web additional properties 'imagee' not allowed",
  ],
  "an ssh agent that only a person has": [
    "failed to convert agent config {default [] false}: invalid empty ssh agent socket: make sure SSH_AUTH_SOCK is set\n",
    "failed to convert agent config {default [] false}: invalid empty ssh agent socket: make sure SSH_AUTH_SOCK is set. No agent of a person runs here: name a key in the compose file, ssh: [default=/path/of/the/key]",
  ],
  "a port of another container": [
    ` Container shop-web-1  Starting\nError response from daemon: ${frontier} shop-web-1 (${digest}): Bind for 0.0.0.0:8080 failed: port is already allocated\n`,
    `${frontier} shop-web-1 (46e370a99ac4): Bind for 0.0.0.0:8080 failed: port is already allocated. Find what uses it: docker ps, ss -ltnp`,
  ],
  "a port of another program": [
    ` Container shop-web-1  Starting\nError response from daemon: failed to bind host port for 0.0.0.0:80:172.30.0.2:80/tcp: address already in use\n`,
    "failed to bind host port for 0.0.0.0:80:172.30.0.2:80/tcp: address already in use. Find what uses it: docker ps, ss -ltnp",
  ],
  "a container's name that is taken": [
    ` Container app  Creating\n Container app  Error response from daemon: Conflict.\nError response from daemon: Conflict. The container name "/app" is already in use by container "${digest}". You have to remove (or rename) that container to be able to reuse that name.\n`,
    `Conflict. The container name "/app" is already in use by container "46e370a99ac4". You have to remove (or rename) that container to be able to reuse that name`,
  ],
  "a secret's file that is not there": [
    ` Container shop-web-1  Creating\ntime="2026-11-28T19:10:46Z" level=warning msg="secret file shop_s does not exist"\n Container shop-web-1  Error response from daemon: invalid mount\nError response from daemon: invalid mount config for type "bind": bind source path does not exist: /srv/shop/nope.txt\n`,
    'invalid mount config for type "bind": bind source path does not exist: /srv/shop/nope.txt',
  ],
  "an external network that is not there": [
    "network front declared as external, but could not be found\n",
    "network front declared as external, but could not be found",
  ],
  "what steers a terminal": ["\u001b[31mboom\u001b[0m\u0007\n", "boom"],
  "a build that was killed": ["#8 [2/2] RUN make\n#8 12.31 compiling\n", null],
  "credentials in a URL of a build": [
    `------\n > [2/2] RUN npm ci:\n0.2 npm error fetch https://bob:ghp_${"x".repeat(100)}@npm.example.com/y failed\n${excerpt}failed to solve: process "/bin/sh -c npm ci" did not complete successfully: exit code: 1\n`,
    'failed to solve: process "/bin/sh -c npm ci" did not complete successfully: exit code: 1: npm error fetch https://…@npm.example.com/y failed',
  ],
  nothing: ["", null],
};

for (const [what, [output, cause]] of Object.entries(outputs))
  test(`the cause of a failure is found: ${what}`, () => {
    // As many lines as a command keeps.
    assert.equal(causeIn(output.split("\n").slice(-20)), cause);
  });

test("a cause is one line of at most 300 characters, and keeps its end", () => {
  const long = causeIn([`failed to solve: process "${"x".repeat(5_000)}" did not complete: no such module`]);
  assert.match(long ?? "", /^….*no such module$/);
  const remedied = causeIn([`${"y".repeat(5_000)}: pull access denied`]) ?? "";
  assert.ok((long ?? "").length <= 300 && remedied.length <= 300 && remedied.includes("docker login"));
});
