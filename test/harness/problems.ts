import assert from "node:assert/strict";
import { type HttpProblemCode, type ProblemCode, ProblemError, problems } from "../../src/problems.ts";

export interface ProblemReply {
  readonly status: number;
  readonly headers: Headers;
  /** Text or parsed. */
  readonly body: unknown;
}

const uuid = /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Checks a reply against RFC 9457 and the catalogue: status, members, content type, no name of the software. */
export function assertProblem(reply: ProblemReply, code: HttpProblemCode, extraMembers: string[] = []): void {
  const body = typeof reply.body === "string" ? JSON.parse(reply.body) : reply.body;
  assert.equal(body.code, code, JSON.stringify(body));
  const { status, title } = problems[code];
  assert.equal(reply.status, status);
  assert.equal(body.status, status);
  assert.equal(body.title, title);
  assert.equal(body.type, `urn:hotpush:problem:${code}`);
  assert.match(body.instance, uuid);
  assert.match(body.detail, /^[A-Z].*\.$/s);
  const members = ["type", "title", "status", "detail", "instance", "code", ...extraMembers];
  assert.deepEqual(Object.keys(body).sort(), members.sort());
  assertHeaders(reply, "application/problem+json; charset=utf-8");
}

/** Checks what every answer has: a content type, no caching, no sniffing, no name of the software. */
export function assertHeaders({ headers }: Pick<ProblemReply, "headers">, contentType: string): void {
  assert.equal(headers.get("content-type"), contentType);
  assert.equal(headers.get("cache-control"), "no-store");
  assert.equal(headers.get("x-content-type-options"), "nosniff");
  assert.equal(headers.get("server"), null);
  assert.equal(headers.get("x-powered-by"), null);
}

/** For `assert.throws` and `assert.rejects`: a ProblemError with this code and a matching `message`. */
export function isProblem(code: ProblemCode, message: RegExp = /./): (error: unknown) => true {
  return (error) => {
    assert.ok(error instanceof ProblemError, String(error));
    assert.equal(error.problem.code, code);
    assert.match(error.message, message);
    return true;
  };
}
