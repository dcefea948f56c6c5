import assert from "node:assert/strict";
import { connect } from "node:net";
import { join } from "node:path";
import { after } from "node:test";
import fc from "fast-check";
import { requestFor, rows } from "../../src/calls/table.ts";
import { deliver, githubPush } from "../harness/delivery.ts";
import { makeToken, startPage } from "../harness/page.ts";
import { startService } from "../harness/service.ts";
import { fuzz } from "./fuzz.ts";

const batchSize = 100;

const service = await startService({ after });
const page = await startPage({ after }, service);
await deliver(service.url, githubPush());
const tokens = [page.token, await makeToken(service, "viewer"), `hpt_${"A".repeat(43)}`, "x", ""];

const others =
  "/ /sign-in /sign-out /sessions /metrics /health /projects/{project} /deployments/{id} /api/openapi.json /api/ /projects/{project}/deploy /projects/{project}/pause /deployments/{id}/cancel /assets/{project}";
const paths = [
  ...rows.map(([, { path }]) => `/api${path.replaceAll(/:(\w+)/g, "{$1}")}`),
  ...others.split(" "),
];
const piece = fc.oneof(
  fc.constantFrom(..."1 latest default 0 -1 99999999999999999999 .. %2e%2e % %00 //".split(" ")),
  fc.string({ maxLength: 12 }),
);
const known = fc
  .tuple(fc.constantFrom(...paths), piece, piece)
  .map(([path, id, project]) => path.replace("{id}", () => id).replace("{project}", () => project));
const odd = fc.oneof(fc.string(), fc.webPath(), fc.webUrl()).map((text) => text.slice(0, 200));
const target = fc.oneof(
  { weight: 4, arbitrary: known },
  { weight: 1, arbitrary: fc.tuple(known, odd).map((parts) => parts.join("/")) },
  { weight: 1, arbitrary: odd.map((text) => `/${text}`) },
  { weight: 1, arbitrary: odd },
);
const members = ["ref", "version", "reason", "link", "id", "directory", "requestedBy", "token", "name"];
const body = fc.oneof(
  fc.constant(""),
  fc
    .dictionary(fc.constantFrom(...members), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 })
    .map((value) => JSON.stringify(value)),
  fc.constantFrom(
    '{"link":{"toString":1,"valueOf":1}}',
    '{"__proto__":{"x":1}}',
    "[]",
    "null",
    "{",
    "a=x&b=y",
  ),
  fc.json({ maxDepth: 3 }),
  fc.string(),
  fc.integer({ min: 1, max: 40_000 }).map((length) => "x".repeat(length)),
);
const headers = `Last-Event-ID: 1:5|Last-Event-ID: x|Content-Type: application/json|X-Forwarded-For: 1.2.3.4, x|X-Visitor-Address: 127.0.0.1|Transfer-Encoding: chunked|Expect: 100-continue|Origin: http://localhost:${page.port}|Sec-Fetch-Site: same-origin|Range: bytes=0-1|Accept: text/html|Cookie: hotpush=hps_x|Content-Length: 3|Host: other.example|Connection: close|Upgrade: websocket`;
const header = fc.constantFrom(...headers.split("|"));
const method = fc.constantFrom(..."GET GET POST POST HEAD PUT DELETE OPTIONS PURGE CONNECT".split(" "));

/** Calls of the table with members that fit, or nearly; `hold` would keep the service from deploying, `endVisitor` take the tokens. */
const fitting = fc
  .constantFrom(...rows.filter(([name]) => name !== "hold" && name !== "endVisitor"))
  .chain(([, row]) => {
    const names = ["id", "project", ...Object.keys(row.takes)];
    const asked = Object.fromEntries(names.map((name) => [name, memberOf(name)]));
    return fc.record(asked, { requiredKeys: ["id", "project"] }).map((values) => {
      try {
        const { method, path, body = "" } = requestFor(row, values);
        return { method, target: path, body };
      } catch {
        // No text can be made of it: it goes into the body.
        return { method: row.method, target: row.path, body: JSON.stringify(values) };
      }
    });
  });

function memberOf(name: string): fc.Arbitrary<unknown> {
  const fits: Readonly<Record<string, readonly unknown[]>> = {
    id: [1, 1, "latest", 99],
    project: ["default", "default", "_", "nothing"],
  };
  const others = [1, "1", 1_000, "abc", "failed", "main", "viewer", "ndjson", "false"];
  const fitting = fc.constantFrom(...(fits[name] ?? others));
  return fc.oneof({ weight: 6, arbitrary: fitting }, fc.jsonValue({ maxDepth: 1 }));
}

/** Where a request goes: to the page, or past it. */
const sockets = ["page", "front.sock", "control.sock"] as const;

const wire = fc
  .record({
    request: fc.oneof(fc.record({ method, target, body }), fitting),
    to: fc.constantFrom(...sockets),
    headers: fc.array(header, { maxLength: 3 }),
    token: fc.constantFrom(...tokens),
  })
  .map(({ request, to, headers, token }) => {
    const [, first] = request.target.split("/");
    const isCall = to === "page" && rows.some(([, { path }]) => path.split("/")[1] === first);
    const path = Buffer.from(`${isCall ? "/api" : ""}${request.target}`).toString("latin1");
    const head = [
      `${request.method} ${path.replaceAll(/[\s\0]/g, "_")} HTTP/1.1`,
      `Host: localhost:${page.port}`,
      `Content-Length: ${Buffer.byteLength(request.body)}`,
      "Connection: close",
      ...(token === "" ? [] : [`Authorization: Bearer ${token}`]),
      ...headers,
    ];
    const bytes = [Buffer.from(`${head.join("\r\n")}\r\n\r\n`, "latin1"), Buffer.from(request.body)];
    return { to, bytes: Buffer.concat(bytes) };
  });

/** @returns 0 if the page closed the connection without an answer */
function statusOf({ to, bytes }: { readonly to: (typeof sockets)[number]; readonly bytes: Buffer }) {
  const place =
    to === "page" ? { port: page.port, host: "127.0.0.1" } : { path: join(service.statePath, to) };
  return new Promise<number>((resolve) => {
    const socket = connect(place, () => socket.write(bytes));
    socket.on("error", () => {}).on("close", () => resolve(0));
    socket.once("data", (chunk) => {
      resolve(Number(/^HTTP\/1\.1 (\d{3}) /.exec(String(chunk))?.[1] ?? 999));
      socket.destroy();
    });
  });
}

const statuses = new Set<number>();
const faults = new Set<string | undefined>(["request.failed", "service.failed"]);

fuzz(
  "no request to the page or to a socket of run is a fault or ends a process",
  fc.asyncProperty(
    fc.array(wire, { minLength: batchSize, maxLength: batchSize, size: "max" }),
    async (wires) => {
      for (const [index, status] of (await Promise.all(wires.map(statusOf))).entries()) {
        statuses.add(status);
        // 503 says that `run` did not answer in time, as on a busy machine.
        const sent = `${wires[index]?.to} ${wires[index]?.bytes}`.slice(0, 500);
        assert.ok(status < 500 || status === 503, `${status}: ${sent}`);
      }
      assert.equal(service.child.exitCode, null);
      assert.ok(!service.log.lines.some(({ event }) => faults.has(event)));
    },
  ),
  2_000,
  batchSize,
  async () => {
    assert.equal((await page.ask("GET /api/projects")).status, 200);
    for (const status of [200, 400, 401, 403, 404]) assert.ok(statuses.has(status), `never ${status}`);
  },
);
