import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { pino } from "pino";
import {
  listReaders,
  nextReport,
  type Reader,
  setSubscribers,
  type WaitingReport,
} from "../../src/deployments/outbox.ts";
import { createNotifications, type Send } from "../../src/notifications/notifications.ts";
import { delivered, type SendOutcome } from "../../src/notifications/outcome.ts";
import type { Store } from "../../src/platform/sqlite.ts";
import { pushOf, record, run, temporaryStore } from "../harness/store.ts";
import { until } from "../harness/until.ts";

const failed: SendOutcome = { kind: "failed", fault: "it answered 500", waitMs: null };
const refused: SendOutcome = { kind: "refused", fault: "it answered 410" };

test("reports reach each subscriber in order, also after failed attempts", async (t) => {
  const { store, wake } = deliveryFor(t, { one: answering(failed, failed, delivered), two: answering() });
  const sent = fill(store, 3);
  wake();
  await until("all are delivered", () => listReaders(store).length === 0);
  assert.deepEqual(idsOf("one"), [sent[0], sent[0], ...sent]);
  assert.deepEqual(idsOf("two"), sent);
});

test("a report that is refused for good is left out, and the next one is sent", async (t) => {
  const { store, wake, lines } = deliveryFor(t, { one: answering(refused, delivered) });
  const sent = fill(store, 2);
  wake();
  await until("none is left", () => listReaders(store).length === 0);
  assert.deepEqual(idsOf("one"), sent);
  assert.match(lines.join(""), /was not taken by one: it answered 410. It is given up/);
});

test("a report is given up after a day, and the log says so", async (t) => {
  const { store, wake, lines } = deliveryFor(t, {}, ["one"]);
  const now = t.mock.method(Date, "now", () => 1_000_000_000_000);
  fill(store, 1);
  now.mock.mockImplementation(() => 1_000_086_000_000);
  fill(store, 1);
  wake();
  assert.equal(nextReport(store, { project: "default", subscriber: "one" })?.report.deployment.id, 1);
  now.mock.mockImplementation(() => 1_000_086_400_001);
  wake();
  assert.equal(nextReport(store, { project: "default", subscriber: "one" })?.report.deployment.id, 2);
  assert.match(lines.join(""), /"event":"notifications.given_up".*"count":1/);
});

test("what waits for a subscriber that the settings do not name now stays", async (t) => {
  const senders: Record<string, Send> = {};
  const { store, wake } = deliveryFor(t, senders, ["one"]);
  fill(store, 1);
  wake();
  await turn();
  assert.equal(listReaders(store).length, 1);
  senders.one = answering();
  wake();
  await until("it is delivered", () => listReaders(store).length === 0);
});

let attempts: WaitingReport[] = [];

function idsOf(subscriber: string): readonly number[] {
  return attempts.filter((one) => one.subscriber === subscriber).map(({ report }) => report.deployment.id);
}

/** Gives these outcomes one after the other, and the last one from then on. */
function answering(...outcomes: readonly SendOutcome[]): Send {
  const left = [...outcomes];
  return async () => left.shift() ?? delivered;
}

function deliveryFor(
  t: TestContext,
  senders: Record<string, Send>,
  names: readonly string[] = Object.keys(senders),
) {
  attempts = [];
  const store = temporaryStore(t);
  store.transaction(() => setSubscribers(store, names));
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  const stopping = new AbortController();
  t.after(() => stopping.abort());
  const findSend = ({ subscriber }: Reader): Send | null => {
    const send = senders[subscriber];
    return send
      ? (waiting, signal) => {
          attempts.push(waiting);
          return send(waiting, signal);
        }
      : null;
  };
  const delivery = createNotifications({
    store,
    log,
    findSend,
    isLeader: () => true,
    stopping: stopping.signal,
    firstRetryMs: 1,
  });
  return { ...delivery, store, lines };
}

/** @returns the numbers of `count` deployments that have failed */
function fill(store: Store, count: number): readonly number[] {
  return Array.from({ length: count }, () => {
    record(store, pushOf());
    return run(store, "failed").id;
  });
}
