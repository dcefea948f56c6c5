/** The JSON of the API, as JSON Schema 2020-12. A test holds every answer to it. */
const text = { type: "string" } as const;
const count = { type: "integer", minimum: 0 } as const;
const moment = { type: "string", format: "date-time" } as const;
const orNull = <Of extends object>(schema: Of) => ({ anyOf: [schema, { type: "null" }] });
const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const listOf = (name: string) => ({ type: "array", items: ref(name) });

function object(properties: Readonly<Record<string, object>>): object {
  return { type: "object", properties, required: Object.keys(properties), additionalProperties: false };
}

const states = [
  ...["queued", "running", "succeeded", "failed", "timed_out", "cancelled", "superseded"],
  ...["interrupted", "skipped"],
];
const person = object({ name: text });
const reported = object({ name: text, reported: { const: true } });

export const schemas: Readonly<Record<string, object>> = {
  Problem: object({ title: text, status: count, detail: text }),
  Visitor: object({
    name: text,
    kind: { enum: ["session", "token"] },
    rights: { type: "array", items: { enum: ["read", "deploy"] } },
    id: count,
  }),
  Pause: object({ since: moment, reason: orNull(text), by: orNull(reported) }),
  Live: object({ commit: text, subject: orNull(text), author: orNull(text), since: orNull(moment) }),
  Project: object({
    name: text,
    repoPath: orNull(text),
    webUrl: orNull(text),
    branches: { type: "array", items: text },
    live: orNull(ref("Live")),
    last: orNull(ref("Deployment")),
    waiting: count,
    paused: orNull(ref("Pause")),
    fault: orNull(text),
    isServed: { type: "boolean" },
  }),
  Projects: object({ projects: listOf("Project") }),
  Step: object({ attempt: count, name: text, startedAt: moment, durationMs: orNull(count) }),
  Deployment: {
    ...object({
      id: count,
      project: text,
      trigger: { enum: ["push", "catch-up", "manual", "rollback"] },
      ref: text,
      commit: text,
      state: { enum: states },
      attempts: count,
      createdAt: moment,
      startedAt: orNull(moment),
      finishedAt: orNull(moment),
      durationMs: orNull(count),
      pusher: orNull(person),
      requestedBy: orNull(reported),
      cancelledBy: orNull(reported),
      problem: orNull(object({ code: text, title: text, detail: text })),
    }),
    // docs/cli.md describes the others; more may come.
    additionalProperties: true,
  },
  Deployments: object({ deployments: listOf("Deployment"), next: orNull(count) }),
  OneDeployment: object({ deployment: ref("Deployment"), steps: listOf("Step"), logBytes: count }),
  Examination: object({
    project: text,
    isRunning: { type: "boolean" },
    examinedAt: orNull(moment),
    // docs/troubleshooting.md describes it.
    report: orNull({ type: "object" }),
  }),
  Paused: object({ project: text, paused: orNull(ref("Pause")) }),
  Requested: object({ deployment: ref("Deployment"), paused: orNull(ref("Pause")) }),
};
