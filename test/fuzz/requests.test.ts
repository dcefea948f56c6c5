import assert from "node:assert/strict";
import { after } from "node:test";
import fc from "fast-check";
import { githubDelivery, githubPush, sign } from "../harness/delivery.ts";
import { onTheWire } from "../harness/raw-http.ts";
import { startReceiver } from "../harness/receiver.ts";
import { fuzz, replaceAt, statusesFrom } from "./fuzz.ts";

const batchSize = 250;
const connectionCount = 10;

const receiver = await startReceiver({ after });
const mainRefs = new Set<string>(["refs/heads/main", "refs/heads/master"]);

/**
 * What `fuzz` needs to send `count` requests: none is a fault, and only signed pushes to main or master are recorded.
 *
 * @param check gets all statuses that were answered
 */
function sending(
  request: fc.Arbitrary<string>,
  count: number,
  check: (seen: ReadonlySet<number>) => void,
  isSigned = false,
) {
  const seen = new Set<number>();
  const batch = fc.array(request, { minLength: batchSize, maxLength: batchSize, size: "max" });
  const property = fc.asyncProperty(batch, async (wires) => {
    receiver.pushes.length = 0;
    const shares = Array.from({ length: connectionCount }, (_, at) =>
      wires.filter((_wire, index) => index % connectionCount === at),
    );
    const statuses = await Promise.all(shares.map((share) => statusesFrom(receiver.port, share)));
    for (const status of statuses.flat()) seen.add(status);
    assert.deepEqual(receiver.faults, []);
    assert(Math.max(...seen) < 500);
    if (!isSigned) assert.deepEqual(receiver.pushes, []);
    for (const { ref, commit } of receiver.pushes) {
      assert(mainRefs.has(ref), `${ref} was recorded`);
      assert.match(commit, /^([0-9a-f]{40}|[0-9a-f]{64})$/);
    }
  });
  return [property, count, batchSize, () => check(seen)] as const;
}

const token = fc.stringMatching(/^[A-Za-z0-9_-]{1,20}$/);
const fieldText = fc.stringMatching(/^[\x20-\x7e]{0,40}$/);
const headerNames =
  "Content-Type X-GitHub-Event X-Hub-Signature-256 X-Hub-Signature X-Gitlab-Token webhook-signature webhook-id webhook-timestamp X-Gitea-Signature X-Event-Key __proto__ constructor Content-Encoding Accept Cookie";
const headerName = fc.oneof(token, fc.constantFrom(...headerNames.split(" ")));
const headerValues = "application/json push sha256= sha1=abc v1, v1,AAAA gzip 100-continue ;";
const headerValue = fc.oneof(
  fieldText,
  fc.stringMatching(/^[0-9a-fA-F]{60,68}$/).map((hex) => `sha256=${hex}`),
  fc.constantFrom(...headerValues.split(" ")),
);
const target = fc.oneof(
  fc.constantFrom(..."/webhook /webhook /webhook /health /webhook/ //webhook * /%2e%2e/webhook".split(" ")),
  fc.webPath().map((path) => path || "/"),
  fc.stringMatching(/^\/[\x21-\x7e]{0,30}$/),
);
const method = fc.constantFrom(..."POST POST POST GET PUT DELETE OPTIONS PATCH TRACE".split(" "));
const bodyText = fc.oneof(
  fieldText,
  fc.json(),
  fc.constant(""),
  fc.string({ unit: "binary-ascii", maxLength: 100 }),
);

const anyHeaders = fc.dictionary(headerName, headerValue, { maxKeys: 6 });
/** Most requests without a JSON content type are refused before their signature is checked. */
const headers = fc.oneof(
  anyHeaders,
  anyHeaders.map((some) => ({ ...some, "Content-Type": "application/json" })),
);

/** Valid HTTP requests that are not signed with the secret; they can share a connection. */
const wellFormedUnsigned: fc.Arbitrary<string> = fc
  .record({ method, target, headers, body: bodyText })
  .map(({ headers, body, ...options }) => onTheWire({ headers, body }, options));

/** A push that has everything but the secret: signed with another one, over another body, or with random text. */
const forgedPush: fc.Arbitrary<string> = fc
  .tuple(
    fc.constantFrom("another secret than the right one", "", " ", "change-me"),
    fc.option(fc.stringMatching(/^[0-9a-f]{64}$/), { nil: undefined }),
    fc.constantFrom("x-hub-signature-256", "x-gitea-signature", "x-gogs-signature", "x-pagure-signature-256"),
    fc.boolean(),
  )
  .map(([secret, hex, header, isForOtherBody]) => {
    const { body } = githubPush();
    const digest = hex ?? (isForOtherBody ? sign(`${body} `) : sign(body, secret));
    const { "x-hub-signature-256": _, ...headers } = githubDelivery("push", body).headers;
    const prefix = header.startsWith("x-hub") ? "sha256=" : "";
    return onTheWire({ headers: { ...headers, [header]: prefix + digest }, body });
  });

const oddRefs = [
  "main",
  ...["main", "master", "main\n", "main ", "Main", "main/../x", "-main", "$(id)", "m\u0430in"].map(
    (name) => `refs/heads/${name}`,
  ),
  "REFS/HEADS/MAIN",
];
const oddCommits = ["0".repeat(40), "f".repeat(40), "F".repeat(40), "f".repeat(41), "f".repeat(64)];
const oddTexts = [...oddRefs, ...oddCommits, "", " ", "\0", "\ud800", "a".repeat(5_000)];
const oddOthers: readonly unknown[] = JSON.parse(
  '[null,true,0,-1,1.5,1e308,[],["refs/heads/main"],{},{"toString":"x"},[[[[]]]]]',
);
const oddValue = fc.option(fc.constantFrom(...oddTexts, ...oddOthers), { nil: undefined });

/** A push as GitHub sends it, with up to three values replaced or removed, then signed. */
const mutatedPush: fc.Arbitrary<string> = fc
  .array(fc.tuple(fc.nat(100), oddValue), { minLength: 1, maxLength: 3 })
  .map((changes) => {
    const payload: object = JSON.parse(githubPush({ mark: "mutated" }).body.toString());
    return signed(JSON.stringify(changes.reduce((one, change) => replaceAt(one, ...change), payload)));
  });

/** Any signed body, JSON or not. */
const signedDocument: fc.Arbitrary<string> = fc
  .oneof(
    fc
      .anything({ withNullPrototype: true, maxDepth: 4 })
      .map((value) => JSON.stringify(value) ?? "undefined"),
    fc.json({ maxDepth: 6 }),
    fc.string({ unit: "binary", maxLength: 60 }),
  )
  .chain((text) => fc.constantFrom("push", "ping", "issues", "").map((event) => signed(text, event)));

function signed(text: string, event = "push"): string {
  return onTheWire(githubDelivery(event, Buffer.from(text)));
}

const reaches =
  (...statuses: readonly number[]) =>
  (seen: ReadonlySet<number>) =>
    assert(seen.isSupersetOf(new Set(statuses)), `only ${[...seen]}`);

fuzz(
  "unsigned requests of any kind are never recorded and never a fault",
  ...sending(wellFormedUnsigned, 20_000, reaches(401, 404, 415)),
);

fuzz(
  "pushes that have everything but the secret are all refused with 401",
  ...sending(forgedPush, 5_000, (seen) => assert.deepEqual([...seen], [401])),
);

fuzz(
  "signed documents of any kind are never a fault, and only the two refs are recorded",
  ...sending(fc.oneof(signedDocument, mutatedPush), 24_000, reaches(200, 202, 422), true),
);
