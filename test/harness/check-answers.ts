/**
 * Loaded before a service in tests: holds each JSON answer of `run`'s sockets to the shape in the table of calls. One that is not
 * right is a fault of its request, so the test that made the call fails.
 */
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const { ServerResponse } = process.getBuiltinModule("node:http");
const load = createRequire(import.meta.url);
const sendEnd = ServerResponse.prototype.end;

ServerResponse.prototype.end = function end(this: InstanceType<typeof ServerResponse>, ...rest: unknown[]) {
  const [body] = rest;
  // Over TCP are the webhook and the page.
  if (typeof body === "string" && this.req.socket.remoteAddress === undefined) checkBody(this, body);
  return (sendEnd as (...args: unknown[]) => typeof this).apply(this, rest);
} as typeof sendEnd;

function checkBody({ req, statusCode }: InstanceType<typeof ServerResponse>, body: string): void {
  const { findCall } = load("../../src/calls/table.ts") as typeof import("../../src/calls/table.ts");
  const { problem } = load("../../src/calls/shapes.ts") as typeof import("../../src/calls/shapes.ts");
  // The one that the service has loaded, and no second one: the first answer must not take long.
  const v = load(fileURLToPath(import.meta.resolve("valibot"))) as typeof import("valibot");
  const found = findCall(req.method ?? "", req.url?.split("?")[0] ?? "");
  if (found === null || (statusCode < 400 && typeof found.row.gives === "string")) return;
  const shape = statusCode < 400 ? (found.row.gives as import("valibot").GenericSchema) : problem;
  const { issues = [] } = v.safeParse(shape, JSON.parse(body));
  if (issues.length === 0) return;
  const texts = issues.map((issue) => `${v.getDotPath(issue)}: ${issue.message}`);
  throw new Error(`The answer of ${found.name} has not its shape: ${texts.join("; ")}`);
}
