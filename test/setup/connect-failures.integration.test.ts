import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import type { HostFault } from "../../src/setup/host-apis.ts";
import { makeConnectedProject, signingToken } from "../harness/connected-project.ts";
import { type FakeAnswer, hostToken } from "../harness/fake-git-host.ts";
import { type HostName, hostDescriptions } from "../harness/git-host-apis.ts";

const refusal = (status: number, body: object = {}) => ({ status, body: JSON.stringify(body) });
const echo = `it was ${hostToken}, ${signingToken}`;

const ofGitea = {
  scope: { message: "token does not have at least one of required scope(s): [write:repository]" },
  value: { message: `webhook can only call allowed HTTP servers, ${echo}`, url: "https://x/api/swagger" },
};

/** As each host words a token without the right, and a value that it does not take. */
const bodies: Readonly<Record<HostName, { readonly scope: object; readonly value: object }>> = {
  github: {
    scope: { message: "Resource not accessible by personal access token", status: "403" },
    value: {
      message: "Validation Failed",
      errors: [{ resource: "Hook", code: "custom", message: `is blocked, ${echo}` }],
    },
  },
  gitea: ofGitea,
  forgejo: ofGitea,
  gitlab: {
    scope: { error: "insufficient_scope", error_description: "higher privileges", scope: "api" },
    value: { message: { url: [`is blocked: Requests to localhost are not allowed, ${echo}`] } },
  },
  "bitbucket-cloud": {
    scope: {
      type: "error",
      error: { message: "Your credentials lack one or more required privilege scopes.", detail: {} },
    },
    value: { type: "error", error: { message: echo, fields: { url: ["bad"] } } },
  },
};

type Failure = readonly [label: string, fault: HostFault, answer: FakeAnswer];

/** The documented failures of each host; connect.integration.test.ts has that of one which does not answer. */
function failuresOf(name: HostName): readonly Failure[] {
  const { scope, value } = bodies[name];
  return [
    ["a token that is not valid", "token_invalid", refusal(401, { message: echo })],
    ["a token without the right", "token_too_weak", refusal(403, scope)],
    ["a repository that it does not show", "not_found", refusal(404, { message: "Not Found" })],
    ["a change at the same time", "unavailable", refusal(409)],
    ["a value that it refuses", "refused", refusal(422, value)],
    ["too many requests", "unavailable", { status: 429, headers: { "retry-after": "31" } }],
    ["the same as 403", "unavailable", { status: 403, headers: { "x-ratelimit-remaining": "0" } }],
    ["a fault of its own", "unavailable", refusal(500)],
    ["a redirect", "not_found", { status: 301, headers: { location: "/elsewhere" } }],
    ["a page in its place", "no_api", { status: 200, body: "<html>" }],
  ];
}

for (const name of Object.keys(hostDescriptions) as readonly HostName[]) {
  test(`${name}: each failure of each call is one line without a secret`, async (t) => {
    const project = await makeConnectedProject(t, name);
    const { host } = project;
    await project.connect();
    // What comes after these tests what is made.
    const isMaking = (operation: string) => /^POST (?:hooks|.*keys)$/.test(operation);
    const operations = host.calls.slice(0, host.calls.findLastIndex(isMaking) + 1);
    await project.connect({ remove: true });
    for (const [label, fault, answer] of failuresOf(name))
      for (const [index, operation] of operations.entries()) {
        host.calls.length = 0;
        host.instead = ({ number }) => (number === index + 1 ? answer : null);
        const ending = await project.connect();
        const place = `${label}, at ${operation}`;
        assert.deepEqual([ending.fault, ending.code], [fault, 1], place);
        assert.doesNotMatch(ending.refusal ?? "", /\n/, place);
        for (const hidden of [hostToken, signingToken])
          assert.ok(![ending.refusal, ...ending.said].some((text) => text?.includes(hidden)), place);
        assert.ok(!existsSync(project.keyPath), "git uses no key that the host does not have");
        host.hooks.length = 0;
      }
    assert.deepEqual(host.faults, []);
  });
}
