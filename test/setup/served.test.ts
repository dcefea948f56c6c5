import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import type { ComposeService } from "../../src/platform/compose.ts";
import { modeOf, namesRunToTheirEnd } from "../../src/rollout/project.ts";
import { overrideText } from "../../src/setup/project.ts";
import {
  askPublishedPorts,
  endpointsOf,
  notesOf,
  parsePlace,
  planServed,
  questionsOf,
  type ServedOptions,
  type ServedPlan,
  type SetupServices,
  serviceAfter,
} from "../../src/setup/served.ts";
import { placesIn, siteText } from "../../src/setup/sites.ts";
import { listenHere } from "../harness/listen.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { noChoices, publicProjects } from "./public-projects.ts";

/** What a person decides about a project that they know. */
interface Choice {
  /** What Caddy serves, by service and port in the container, and where; the main one first. They are asked for each. */
  readonly at?: Readonly<Record<string, string>>;
  /** What stays published. */
  readonly stays?: readonly string[];
  /** What a roll-out recreates; all else runs side by side. */
  readonly recreated: readonly string[];
}

const name = "app.example.org";
const choices: Readonly<Record<string, Choice>> = {
  ghost: { at: { "ghost:2368": name }, recreated: ["db", "ghost"] },
  gitea: { at: { "server:3000": name }, stays: ["server:22"], recreated: ["db", "server"] },
  immich: {
    at: { "immich-server:2283": name },
    recreated: ["database", "immich-machine-learning", "immich-server", "redis"],
  },
  mastodon: {
    at: { "web:3000": name },
    stays: ["streaming:4000"],
    recreated: ["db", "redis", "sidekiq", "streaming", "web"],
  },
  // Its author chooses none: a game has no page.
  minecraft: { stays: ["mc:25565", "mc:25575"], recreated: ["mc"] },
  n8n: { at: { "n8n:5678": name }, recreated: ["n8n"] },
  nextcloud: { at: { "app:80": name }, recreated: ["app", "cron", "db"] },
  outline: {
    at: { "outline:3000": name, "oidc:8080": "oidc.app.example.org" },
    recreated: ["outline", "postgres"],
  },
  paperless: { at: { "webserver:8000": name }, recreated: ["broker", "db", "webserver"] },
  plausible: {
    at: { "plausible:8000": name },
    recreated: ["plausible", "plausible_db", "plausible_events_db"],
  },
  // Port 8448 has a certificate of its own. For a name of this server's: --at synapse:8008=<host name>
  synapse: { stays: ["synapse:8448"], recreated: ["db", "synapse"] },
  umami: { at: { "umami:3000": name }, recreated: ["db"] },
  "uptime-kuma": { at: { "uptime-kuma:3001": name }, recreated: ["uptime-kuma"] },
  vaultwarden: { at: { "vaultwarden:80": name }, recreated: ["vaultwarden"] },
  voting: {
    at: { "vote:80": name, "result:80": "result.app.example.org" },
    stays: ["result:9229"],
    recreated: ["db", "result", "vote"],
  },
  "wordpress-phpmyadmin": {
    at: { "wordpress:80": name, "phpmyadmin:80": "phpmyadmin.app.example.org" },
    stays: ["db:3306"],
    recreated: ["db", "wordpress"],
  },
};

/** The project's site, as the next run reads it. */
const siteOf = (plan: ServedPlan) => siteText(plan, "shop", new URL(`https://${name}/webhook`), true);
const again = (plan: ServedPlan): ServedOptions => ({
  ...noChoices,
  places: placesIn(siteOf(plan), name, name),
});

test("each of 16 public projects has a person's choice", () => {
  assert.deepEqual(
    publicProjects.map((one) => one.name),
    Object.keys(choices).sort(),
  );
});

for (const { name: project, services } of publicProjects)
  test(`${project}: init proposes what a person chooses, hides no port, and its second run changes nothing`, () => {
    const choice = choices[project] ?? assert.fail(project);
    const plan = planServed(services, noChoices);
    const served = plan.upstreams.map(({ endpoint, host }) => [`${endpoint.service}:${endpoint.port}`, host]);
    assert.deepEqual(served, Object.entries(choice.at ?? {}));
    const left = plan.left.map(({ endpoint }) => `${endpoint.service}:${endpoint.port}`);
    assert.deepEqual(left.sort(), choice.stays ?? []);
    const asked = questionsOf(plan).map(({ read }) => read("none"));
    assert.deepEqual(
      asked.map((place) => `${place?.service}:${place?.port}`),
      Object.keys(choice.at ?? {}),
    );
    const awaited = namesRunToTheirEnd(services);
    const recreated = Object.entries(services).filter(([service, one]) => {
      const after = serviceAfter(one, plan.changes[service]);
      return modeOf(after, awaited.has(service)).how === "recreate";
    });
    assert.deepEqual(
      recreated.map(([service]) => service),
      choice.recreated,
    );
    const notes = notesOf(services, name, plan);
    for (const { service, published } of endpointsOf(services))
      for (const { port } of published)
        assert.ok(notes.some((note) => note.includes(service) && note.includes(port)));
    const second = planServed(services, again(plan));
    assert.deepEqual([siteOf(second), second.changes], [siteOf(plan), plan.changes]);
    assert.deepEqual(questionsOf(second), []);
  });

type Port = readonly [published: string, target: number, host_ip?: string];

function service(ports: readonly Port[], more: ComposeService = {}): ComposeService {
  const all = ports.map(([published, target, host_ip = ""]) => ({
    published,
    target,
    host_ip,
    protocol: "tcp",
  }));
  return { networks: { default: null }, ...more, ports: all };
}

const build = { context: "/srv/shop" };
const needsApi = { api: { condition: "service_started" } };
const monorepo: SetupServices = {
  admin: service([["3002", 3002]], { build }),
  api: service([["3001", 3001]], { build }),
  web: service([["3000", 3000]], { build, depends_on: needsApi }),
};
const withTool: SetupServices = {
  app: service([["4000", 4000]], { build }),
  adminer: service([["8080", 8080, "127.0.0.1"]], { image: "adminer" }),
  db: service([["5432", 5432]], { image: "postgres" }),
};

/** Where the ports end: `service:port place`, and `service:port stays`. */
function ends(services: SetupServices, more: Partial<ServedOptions> = {}, ...at: readonly string[]) {
  const places = at.map((text) => parsePlace(text) ?? assert.fail(text));
  const { upstreams, left } = planServed(services, { ...noChoices, places, ...more });
  return [
    ...upstreams.map(({ endpoint, host }) => `${endpoint.service}:${endpoint.port} ${host}`),
    ...left.map(({ endpoint }) => `${endpoint.service}:${endpoint.port} stays`),
  ];
}

const nginx = {
  nginx: service([
    ["80", 80],
    ["443", 443],
  ]),
};
const chosen = ["admin=app.example.org", "api=api.org", "web=none"];
const plain: SetupServices = { db: service([["5432", 5432]]), web: service([], { expose: ["3000"] }) };
const unreachable: SetupServices = {
  game: { ports: [{ target: 3000, published: "3000", protocol: "udp" }] },
  host: service([["9000", 9000]], { network_mode: "host" }),
  inner: { network_mode: "service:vpn" },
  vpn: service([["8081", 8081]]),
};

for (const [claim, ended, expected] of [
  [
    "what is built here comes first, and what others depend on later",
    () => ends(monorepo).slice(0, 2),
    ["web:3000 app.example.org", "admin:3002 admin.app.example.org"],
  ],
  [
    "a tool for this server only stays as it is",
    () => ends(withTool),
    ["app:4000 app.example.org", "adminer:8080 stays", "db:5432 stays"],
  ],
  [
    "a person can choose the main service, and every place",
    () => ends(monorepo, {}, ...chosen),
    ["admin:3002 app.example.org", "api:3001 api.org", "web:3000 stays"],
  ],
  [
    "a port of another protocol, or that is not published, can be chosen",
    () => ends(plain, {}, "web=app.example.org", "db=db.example.org"),
    ["web:3000 app.example.org", "db:5432 db.example.org"],
  ],
  [
    "a service with certificates of its own can be served by its plain port",
    () => ends(nginx, {}, "nginx:80=app.example.org"),
    ["nginx:80 app.example.org"],
  ],
  [
    "below an address there are no names, so other services stay as they are",
    () => ends(monorepo, { name: "203.0.113.5" }),
    ["web:3000 203.0.113.5", "admin:3002 stays", "api:3001 stays"],
  ],
  [
    "UDP, and a service that Caddy cannot reach, stay as they are",
    () => ends(unreachable),
    ["game:3000 stays", "host:9000 stays", "vpn:8081 stays"],
  ],
] as const)
  test(claim, () => assert.deepEqual(ended(), expected));

for (const [claim, services, at, says] of [
  ["a service that does not exist", monorepo, ["wbe=w.org"], /^wbe is not a service of your compose file/],
  ["a name twice", monorepo, ["admin=www.org", "api=www.org"], /cannot both be at www\.org/],
  ["a service without a known port", { worker: service([]) }, ["worker=w.org"], /^Which port of worker/],
  ["a service with certificates of its own", nginx, [], /^nginx publishes port 443/],
  ["a port 80 that Caddy cannot pass on", { vpn: service([["80", 1194]]) }, [], /^vpn publishes port 80/],
] as const)
  test(`${claim} is refused`, () =>
    assert.throws(() => ends(services, {}, ...at), { name: "CommandError", message: says }));

test("a port at which something answers that is not HTTP stays", async (t) => {
  const listen = (server: Server) => listenHere(t, server);
  const chat = await listen(createServer((socket) => void socket.end("SSH-2.0-OpenSSH_9.9\r\n")));
  const web = await listen(createHttpServer((_, response) => void response.writeHead(404).end()));
  const silent = await listen(createServer((socket) => socket.destroy()));
  const services = {
    chat: service([[String(chat), 7000]]),
    silent: service([[String(silent), 7001]]),
    web: service([[String(web), 7002]]),
  };
  const answers = await askPublishedPorts(services);
  assert.deepEqual(Object.fromEntries(answers), { [chat]: false, [web]: true });
  const { upstreams, left } = planServed(services, { ...noChoices, answers });
  assert.deepEqual([left.length, left[0]?.reason], [1, "what answers there is not HTTP"]);
  const doubts = upstreams.map(({ endpoint, isInDoubt }) => [endpoint.service, isInDoubt]);
  assert.deepEqual(Object.fromEntries(doubts), { silent: true, web: false });
});

test("a project without published ports has its one service with build:", (t) => {
  const context = temporaryDirectory(t);
  const dockerfile = "FROM node AS build\nEXPOSE 1\nFROM node\nEXPOSE 53/udp\nEXPOSE 8080/tcp\n";
  writeFileSync(join(context, "Dockerfile"), dockerfile);
  const db = service([], { image: "postgres" });
  const app = service([], { build: { context } });
  const unknown = service([], { build: { context: "/nonexistent" } });
  for (const [services, ended] of [
    [{ app, db }, ["app:8080 app.example.org"]],
    [{ app: { ...app, expose: ["3000"] }, db }, ["app:3000 app.example.org"]],
    [{ app, db, worker: app }, []],
    [{ app: unknown, db }, []],
  ] as const)
    assert.deepEqual(ends(services), ended);
  assert.equal(questionsOf(planServed({ app, db }, noChoices))[0]?.proposal, "app.example.org");
});

test("an only service with build: for which a person says none is never served", () => {
  for (const ports of [[["8080", 8080]], []] as const) {
    const app = service(ports, { build, expose: ["8080"] });
    const places = [parsePlace("app=none") ?? assert.fail()];
    const plan = planServed({ app }, { ...noChoices, places });
    assert.deepEqual([plan.upstreams, plan.left.length], [[], 1]);
    assert.deepEqual(planServed({ app }, again(plan)).upstreams, []);
    assert.doesNotMatch(notesOf({ app }, name, plan).join("\n"), /Ports? {2}of/);
  }
});

test("a service of which two may run loses its ports and its name, and joins Caddy's network", () => {
  const networks = { default: null, back: null };
  const web = service([["8080", 80]], { container_name: "shop-web", networks });
  const text = overrideText("shop", planServed({ web }, noChoices).changes).replace(/^#.*\n/gm, "");
  assert.equal(
    text,
    `services:
  "web":
    ports: !reset [] # Caddy takes the requests.
    networks:
      default:
        aliases: ["shop-web"]
      back:
        aliases: ["shop-web"]
      hotpush-shop:
        aliases: [web.shop.containers.internal]
    container_name: !reset null # Two containers cannot share it.

networks:
  hotpush-shop:
    external: true
`,
  );
});

test("--at is read, or rejected", () => {
  for (const [text, service, port, host] of [
    ["admin=admin.example.org", "admin", null, "admin.example.org"],
    ["my_admin.ui:3000=https://Admin.Example.org/", "my_admin.ui", 3000, "admin.example.org"],
    ["db:9200=none", "db", 9200, "none"],
  ] as const)
    assert.deepEqual(parsePlace(text), { service, port, host }, text);
  for (const text of ["", "admin", "admin=", "=a.org", "admin=:80", "admin=a b", "admin=-x.org"])
    assert.equal(parsePlace(text), null, text);
});
