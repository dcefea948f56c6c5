import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import * as v from "valibot";
import { apiCalls } from "../../src/calls/openapi.ts";
import { problem } from "../../src/calls/shapes.ts";
import { placeOf, requestFor, rows } from "../../src/calls/table.ts";
import { sendHttp, withShortPath } from "../../src/platform/http.ts";
import { type HttpProblemCode, problems } from "../../src/problems.ts";
import { deliver, githubPush } from "../harness/delivery.ts";
import { makeSignInLink, makeToken, openSession } from "../harness/page.ts";
import { untilDeployment } from "../harness/records.ts";
import { startService } from "../harness/service.ts";
import { until } from "../harness/until.ts";

const service = await startService(test, { env: { PAGE_BADGE: "1" } });
await deliver(service.url, githubPush());
await untilDeployment(service.statePath, 1, ({ state }) => state === "succeeded");
const viewer = await makeToken(service, "viewer");
const operator = await makeToken(service, "operator");
const viewers = [
  viewer,
  (await openSession(service, await makeSignInLink(service, { role: "viewer" }))) ?? "",
];

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly body?: string;
}

async function send(socket: "control" | "page", { method, path, body }: Sent, token?: string) {
  const headers = { "x-visitor-address": "192.0.2.7", ...(token && { authorization: `Bearer ${token}` }) };
  const request = { method, headers, ...(method === "POST" && { body: body ?? "" }) };
  const ownSocket = join(service.statePath, socket === "page" ? "front.sock" : "control.sock");
  const answer = await withShortPath(ownSocket, (socketPath) => sendHttp({ socketPath, path }, request));
  return { status: answer.status, body: String(answer.body) };
}

const refused = async (code: HttpProblemCode, what: string, ...given: Parameters<typeof send>) => {
  const reply = await send(...given);
  assert.equal(JSON.parse(reply.body || "{}").code, code, what);
  assert.equal(reply.status, problems[code].status, what);
  v.parse(problem, JSON.parse(reply.body));
};

/** What fits each call, but those that wait or cannot be. */
const fitting: Readonly<Record<string, object>> = {
  makeToken: { name: "x", role: "viewer" },
  makeLink: { name: "x", role: "viewer" },
  offerPushes: { ids: [] },
  dryRun: { push: {} },
  noteUses: { uses: [] },
  badge: { project: "default" },
};
const usual = { project: "default", id: 1, service: "web" };

test("each call is refused to everybody without its right", async () => {
  for (const [name, row] of rows) {
    const asked = requestFor(row, { ...usual, link: "x", ...fitting[name] });
    if (row.right === "front") continue;
    for (const credential of [undefined, "hpt_", `hpt_${"A".repeat(43)}`])
      await refused("not_signed_in", name, "page", asked, credential);
    if (row.right === "operator")
      for (const credential of viewers) await refused("not_allowed", name, "page", asked, credential);
    if (row.right === "server")
      for (const credential of [...viewers, operator])
        await refused("not_found", name, "page", asked, credential);
  }
});

test("each call refuses a member that it does not take, one of a wrong type, and one twice", async () => {
  for (const [name, row] of rows) {
    const asked = requestFor(row, { ...usual, link: "x", ...fitting[name] });
    const mark = asked.path.includes("?") ? "&" : "?";
    await refused("input_invalid", name, "control", { ...asked, path: `${asked.path}${mark}odd=1` });
    if (row.method === "POST") {
      for (const odd of [{ odd: 1 }, { toString: 1 }, { requestedBy: "x" }])
        await refused("input_invalid", name, "control", { ...asked, body: JSON.stringify(odd) });
      await refused("input_invalid", name, "control", { ...asked, body: '{"__proto__":{"x":1}}' });
    }
    for (const member of Object.keys(row.takes)) {
      const place = placeOf(row, member);
      const text = `${"\u0000"}{}`.repeat(900);
      const odds: readonly unknown[] =
        place === "body" ? [{}, [], null, 1.5, true, { toString: 1, valueOf: 1 }, text] : [text.slice(0, 60)];
      for (const odd of place === "path" ? [] : odds) {
        if (v.is(row.takes[member] as v.GenericSchema, odd)) continue;
        await refused(
          "input_invalid",
          `${name} ${member}`,
          "control",
          requestFor(row, { ...usual, ...fitting[name], [member]: odd }),
        );
      }
      if (place !== "query") continue;
      await refused("input_invalid", name, "control", {
        ...asked,
        path: `${asked.path}${mark}${member}=1&${member}=1`,
      });
    }
  }
});

test("each call refuses a body that is no JSON object, and one that is too large", async () => {
  for (const [name, row] of rows.filter(([, { method }]) => method === "POST")) {
    const asked = requestFor(row, usual);
    for (const body of ["{", "[]", "null", "1", '"x"', "link=x", '{"a":1}}', "\u0000"])
      await refused("invalid_json", `${name} ${body}`, "control", { ...asked, body });
    await refused("payload_too_large", name, "control", { ...asked, body: `{"x":"${"x".repeat(20_000)}"}` });
    await refused("payload_too_large", name, "control", { ...asked, body: "x".repeat(20_000) });
  }
});

test("each call that looks answers what it gives", async () => {
  const looking = rows.filter(([, { method, right }]) => method === "GET" && right !== "operator");
  assert.ok(looking.length >= 12);
  for (const [name, row] of looking) {
    const [socket, token] = row.right === "server" ? (["control"] as const) : (["page", viewer] as const);
    const { status, body } = await send(socket, requestFor(row, usual), token);
    assert.equal(status, 200, `${name}: ${body}`);
    if (typeof row.gives !== "string") v.parse(row.gives, JSON.parse(body));
  }
});

test("what front may do alone is no call of the API, and takes a link to sign in", async () => {
  const own = rows.filter(([, { right }]) => right === "front");
  const names = own.map(([name]) => name).toSorted();
  assert.equal(names.join(" "), "badge dryRun noteUses offerPushes signIn");
  for (const [name, row] of own) {
    const request = requestFor(row, { ...usual, link: "x", ...fitting[name] });
    const expected = name === "signIn" ? 401 : 200;
    // The service's own front may just have noted uses, which counts at most twice a second.
    await until(`${expected} for ${name}`, async () => (await send("page", request)).status === expected);
    assert.ok(!apiCalls.some(([known]) => known === name));
  }
});

test("a path that is in no row is no call, on either socket", async () => {
  for (const path of [
    "/",
    "//",
    "/projects/../audit",
    "/deployments/1e3",
    "/deployments/-1",
    "/__proto__",
    "/projects/%5f/doctor",
    `/${"x".repeat(4_000)}`,
  ]) {
    for (const method of ["GET", "POST"]) {
      await refused("not_found", path, "control", { method, path });
      await refused("not_found", path, "page", { method, path }, operator);
    }
  }
});

// The last one: it deploys, cancels and pauses.
test("the token of an operator makes each call that acts", async () => {
  for (const [name, row] of rows.filter(([, { right }]) => right === "operator")) {
    const { status, body } = await send("page", requestFor(row, usual), operator);
    assert.ok([200, 202, 409].includes(status), `${name}: ${body}`);
  }
});
