import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import { githubPush } from "../../harness/delivery.ts";
import { converse, onTheWire } from "../../harness/raw-http.ts";
import { type RunningService, startService } from "../../harness/service.ts";

interface Sent {
  readonly forwarded?: readonly string[];
  /** The address that the service sees as that of its peer. */
  readonly peer?: string;
  readonly delivery?: ReturnType<typeof githubPush>;
}

/** Sends a delivery and gives the `from` of the line that the service logs about it. */
async function loggedFrom(service: RunningService, { forwarded = [], peer = "127.0.0.1", delivery }: Sent) {
  const extra = forwarded.map((value) => `X-Forwarded-For: ${value}`);
  const wire = onTheWire(delivery ?? githubPush({ ref: "refs/heads/other" }), { extra });
  const known = service.log.lines.length;
  const socket = connect({ port: service.port, host: "127.0.0.1", localAddress: peer });
  await converse(socket, Buffer.from(wire, "latin1"), { replyCount: 1 });
  const line = await service.log.waitFor(
    (one) => service.log.lines.indexOf(one) >= known && /^delivery\./.test(one.event ?? ""),
  );
  return line.from;
}

test("X-Forwarded-For counts only from a trusted peer, up to the first untrusted address", async (t) => {
  const service = await startService(t, {
    // A socket for IPv6, which a proxy reaches by IPv4 too.
    env: { TRUSTED_PROXIES: "127.0.0.1, 10.0.0.0/8 2001:db8:1::/48", WEBHOOK_HOST: "::" },
  });
  const cases: readonly [Sent, string][] = [
    [{}, "127.0.0.1"],
    [{ forwarded: ["203.0.113.7"] }, "203.0.113.7"],
    [{ forwarded: ["203.0.113.7"], peer: "127.0.0.2" }, "127.0.0.2"],
    [{ forwarded: ["198.51.100.1, 203.0.113.7, 10.1.2.3"] }, "203.0.113.7"],
    [{ forwarded: ["198.51.100.1", "203.0.113.7,2001:db8:1::5"] }, "203.0.113.7"],
    [{ forwarded: ["10.9.9.9, 10.1.2.3"] }, "10.9.9.9"],
    [{ forwarded: ["2001:DB8:0:0::7"] }, "2001:db8::7"],
    [{ forwarded: ["198.51.100.1, ::ffff:cb00:7107, ::ffff:10.1.2.3"] }, "203.0.113.7"],
    [{ forwarded: ["203.0.113.7:4711, 10.1.2.3:80"] }, "203.0.113.7"],
    [{ forwarded: ["[2001:db8::7]:4711"] }, "2001:db8::7"],
    [{ forwarded: ["fe80::1%eth0"] }, "fe80::1"],
  ];
  for (const [sent, expected] of cases) {
    assert.equal(await loggedFrom(service, sent), expected, JSON.stringify(sent));
  }
  // An entry that is no address ends the search at the proxy that sent it.
  for (const entry of ["unknown", "", "256.1.1.1", "1".repeat(9_000), "\xff", '","from":"203.0.113.9']) {
    assert.equal(await loggedFrom(service, { forwarded: [entry] }), "127.0.0.1", entry);
    assert.equal(
      await loggedFrom(service, { forwarded: [`203.0.113.7, ${entry}, 10.1.2.3`] }),
      "10.1.2.3",
      entry,
    );
  }
  for (const line of service.log.lines) assert(JSON.stringify(line).length < 500, JSON.stringify(line));
});
