import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { sourcesDigest } from "../../src/setup/start.ts";
import { readVersion } from "../../src/version.ts";
import { hostToken } from "../harness/fake-git-host.ts";
import { startSshServer } from "../harness/sshd.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { makeLaptop } from "../lab/laptop.ts";

const good = {
  system: "Linux",
  distribution: "debian",
  codename: "trixie",
  user: "0",
  sudo: "yes",
  freeKiB: "9999999",
  address: "203.0.113.5",
  architecture: "amd64",
  missing: "",
  docker: "26.1.5",
  compose: "2.26.1",
  hotpush: readVersion(),
  digest: sourcesDigest(),
};
const remote = "git@git.example.org:octo/shop.git";

/**
 * A server that says `facts` of itself, and only writes down what it is told to run. `answers` are more cases of its shell, `bashrc` is
 * what that runs first.
 */
async function start(
  t: TestContext,
  facts: Partial<typeof good> = {},
  answers = "",
  bashrc = "printf 'Welcome!\\nuser=nobody'",
) {
  const directory = temporaryDirectory(t);
  const at = (name: string) => join(directory, name);
  const sshd = await startSshServer(t, at("ssh"));
  const laptop = await makeLaptop(t);
  const lines = Object.entries({ ...good, ...facts }).map(([name, value]) => `${name}='${value}'\n`);
  writeFileSync(at("facts"), lines.join(""));
  writeFileSync(at("commands"), "");
  const script = `#!/bin/sh
${bashrc}
case $SSH_ORIGINAL_COMMAND in *hotpush-answer:*) printf '\\nhotpush-answer:\\n' ;; esac
asked=\${SSH_ORIGINAL_COMMAND#*hotpush-answer: }
case $asked in
  *os-release*) cat ${at("facts")}; exit ;;
${answers}
  *"command -v dockerd"* | apt-cache*) exit 1 ;;
  *history*) echo '{"deployments":[]}'; exit ;;
  *"hotpush send"*) echo '{"method":"POST","headers":{},"body":"{}"}'; exit ;;
  *"hotpush open"*) exit 1 ;;
esac
printf '%s\\n' "$asked" >>${at("commands")}; cat >>${at("input")}; exit \${code:-0}
`;
  writeScript(at("shell"), script);
  const key = readFileSync(join(laptop.home, "id_ed25519.pub"), "utf8");
  writeFileSync(sshd.authorizedKeys, `command="${at("shell")}" ${key}`, { mode: 0o600 });
  await laptop.learn(`[127.0.0.1]:${sshd.port}`, `${sshd.hostKey}.pub`);
  await laptop.learn("git.example.org", `${sshd.hostKey}.pub`);
  const server = `ssh://root@127.0.0.1:${sshd.port}`;
  const options = [
    ...["--repository", remote, "--api", "gitea+https://git.example.org/octo/shop"],
    ...["--url", "http://shop.invalid", "--token-file", laptop.tokenFile],
  ];
  return {
    laptop,
    server,
    up: (...more: readonly string[]) => laptop.hotpush(["up", server, ...options, ...more]),
    commands: () => {
      const lines = readFileSync(at("commands"), "utf8").split("\n").filter(Boolean);
      return lines.map((line) => line.replace("flock --close /run/hotpush-up.lock ", ""));
    },
    input: () => readFileSync(at("input"), "utf8"),
  };
}

const refused: Readonly<Record<string, Partial<typeof good>>> = {
  "of another system": { system: "Darwin" },
  "of a distribution without apt": { distribution: "fedora", docker: "" },
  "without root": { user: "1000", sudo: "" },
  "with an old Docker": { docker: "20.10.24" },
  "with an old compose": { compose: "2.20.0" },
  "with a full disk": { freeKiB: "1000000", hotpush: "" },
  "with a newer Hotpush": { hotpush: "999.0.0" },
};

for (const [what, facts] of Object.entries(refused))
  test(`up refuses a server ${what} with a sentence, and changes nothing`, async (t) => {
    const { up, commands } = await start(t, facts);
    const { code, output } = await up();
    assert.equal(code, 1, output);
    assert.match(output, /^hotpush: \S/m);
    assert.deepEqual(commands(), []);
  });

test("up names a shell that runs no command, with what it prints", async (t) => {
  const { up, commands } = await start(t, {}, "", "echo This account is for git; exit 0");
  const { code, output } = await up();
  assert.equal(code, 1, output);
  assert.match(output, /^hotpush: .*This account is for git/m);
  assert.deepEqual(commands(), []);
});

test("the token goes to the server as input, and what it runs is printed", async (t) => {
  const { up, commands, input, laptop } = await start(t);
  const { output } = await up();
  const programs = commands().map((line) =>
    /(?:^| )hotpush (\w+)|(known_hosts)/.exec(line)?.slice(1).join(""),
  );
  assert.deepEqual(programs, ["known_hosts", "clone", "init", "connect", "deploy"], output);
  assert.match(input(), new RegExp(`^git\\.example\\.org ssh-\\S+ [^\\n]+\\n${hostToken}${hostToken}$`));
  for (const line of commands()) assert.ok(output.includes(line), line);
  for (const text of [output, ...commands()]) assert.ok(!text.includes(hostToken));
  assert.equal(statSync(join(laptop.home, ".config/hotpush/client.env")).mode & 0o777, 0o600);
});

test("after up, commands about the server run there, also those about receipts and messages", async (t) => {
  const { laptop, server, commands } = await start(t);
  for (const args of [
    ["status", "--json"],
    ["receipt", "7"],
    ["notify", "--test"],
  ]) {
    const { code, output } = await laptop.hotpush([...args, "--server", server]);
    assert.equal(code, 0, output);
    assert.match(commands().at(-1) ?? "", new RegExp(` sh ${args.join(" ")}$`));
  }
});

test("up goes on without an answer to the webhook, but not without a webhook", async (t) => {
  const isRefused = await start(t, {}, '*"hotpush connect"*) code=1 ;;');
  const refused = await isRefused.up();
  assert.equal(refused.code, 1);
  assert.match(isRefused.commands().at(-1) ?? "", /hotpush connect/, refused.output);
  const isThere = await start(t, {}, '*"hotpush connect"*) code=75 ;;');
  const { output } = await isThere.up();
  assert.match(isThere.commands().at(-1) ?? "", /hotpush deploy/, output);
});

test("an image of this Docker for another processor stays here, and is built there", async (t) => {
  const { up, laptop, commands } = await start(t, { hotpush: "" });
  writeScript(join(laptop.home, "bin/docker"), `#!/bin/sh\necho "arm64 ${sourcesDigest()}"\n`);
  const { output } = await up();
  const seen = commands().map((line) => /^(?:tar|docker (?:load|build))/.exec(line)?.[0]);
  assert.deepEqual(seen.filter(Boolean), ["tar", "docker build"], output);
});

test("other sources of the same version upgrade the server, and then take their place", async (t) => {
  const { up, commands } = await start(t, { digest: "that of other sources" });
  const { output } = await up();
  const seen = commands().map((line) => /^(?:tar|docker build)|upgrade|ln -sfn/.exec(line)?.[0]);
  assert.deepEqual(seen.filter(Boolean), ["tar", "docker build", "upgrade", "ln -sfn"], output);
});

/** What Debian 12 offers. */
const bookworm = "docker.io:\n  Installed: (none)\n  Candidate: 20.10.24+dfsg1-1+deb12u1\n";
const noDocker = `apt-cache*) printf '${bookworm.replaceAll("\n", "\\n")}'; exit ;;`;

test("instead of an old Docker of the distribution comes that of Docker's repository", async (t) => {
  const facts = { docker: "", compose: "", codename: "bookworm" };
  const { up, commands, input } = await start(t, facts, noDocker);
  const { output } = await up("--yes");
  const install = "apt-get install --yes --no-install-recommends";
  assert.deepEqual(
    commands()
      .slice(0, 6)
      .map((line) => line.replace(/^env .* (?=apt-get )/, "")),
    [
      `${install} curl`,
      "install -m 0755 -d /etc/apt/keyrings",
      "curl -fsSL https://download.docker.com/linux/debian/gpg -o /etc/apt/keyrings/docker.asc",
      "tee /etc/apt/sources.list.d/docker.sources",
      "apt-get update",
      `${install} docker-ce docker-ce-cli containerd.io docker-buildx-plugin docker-compose-plugin`,
    ],
    output,
  );
  assert.match(input(), /^URIs: https:\/\/download\.docker\.com\/linux\/debian\nSuites: bookworm$/m);
  for (const line of commands()) assert.ok(output.includes(line), line);
});

test("apt is run again as long as another one holds a lock, and no longer", async (t) => {
  const { up, commands } = await start(t, { docker: "", compose: "", codename: "bookworm" }, noDocker);
  await up("--yes");
  const update = commands().find((line) => line.endsWith(" apt-get update")) ?? "false";
  for (const [said, runs] of [
    ["E: Unable to lock the download directory", 2],
    ["E: Unable to locate package", 1],
  ] as const) {
    const bin = temporaryDirectory(t);
    const fails = `[ $(wc -l <${bin}/runs) = 1 ] || exit 0; echo "${said}" >&2; exit 100`;
    writeScript(join(bin, "apt-get"), `#!/bin/sh\necho >>${bin}/runs; ${fails}\n`);
    writeScript(join(bin, "sleep"), "#!/bin/sh\n");
    const { status } = spawnSync("sh", ["-c", update], { env: { PATH: `${bin}:${process.env.PATH}` } });
    assert.equal(readFileSync(join(bin, "runs"), "utf8").length, runs, said);
    assert.equal(status, runs === 2 ? 0 : 100, said);
  }
});

test("without agreement, Docker is not installed", async (t) => {
  const { up, commands } = await start(t, { docker: "", compose: "", hotpush: "" });
  assert.equal((await up()).code, 1);
  assert.deepEqual(commands(), []);
});

test("--dry-run prints each command and calls nobody", async (t) => {
  const { up, commands } = await start(t);
  const { code, output } = await up("--dry-run");
  assert.equal(code, 0, output);
  for (const word of ["apt-get", "docker build", "clone", "init", "connect", "deploy"])
    assert.match(output, new RegExp(`^ {4}.*${word}`, "m"));
  assert.deepEqual(commands(), []);
});

test("a server or a git host whose key is not known is not believed", async (t) => {
  const { up, laptop, commands } = await start(t);
  const [server = "", host = ""] = readFileSync(laptop.knownHosts, "utf8").trim().split("\n");
  for (const known of [server, host]) {
    writeFileSync(laptop.knownHosts, `${known}\n`);
    const { code, output } = await up();
    assert.equal(code, 1, output);
    assert.equal(readFileSync(laptop.knownHosts, "utf8"), `${known}\n`);
  }
  assert.deepEqual(commands(), []);
});

test("what ssh or git would take for an option is a wrong command line", async (t) => {
  const { laptop } = await start(t);
  const file = join(laptop.home, "made");
  for (const args of [
    ["up", `-oProxyCommand=touch ${file}`],
    ["up", "--", `-oProxyCommand=touch ${file}`],
    ["up", "root@203.0.113.5", "--repository", `--upload-pack=touch ${file}`],
    ["up", "root@203.0.113.5", "--repository", `ext::touch ${file}`],
  ])
    assert.equal((await laptop.hotpush(args)).code, 2);
  assert.throws(() => statSync(file));
});
