import { readVersion } from "../../version.ts";
import type { ApiRoute } from "./route.ts";
import { schemas } from "./schemas.ts";

/** The document that describes the API, by the table that serves it. */
export function openApi(routes: Readonly<Record<string, ApiRoute>>): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const [key, route] of Object.entries(routes)) {
    const [method = "", path = ""] = key.split(" ");
    paths[path] = { ...paths[path], [method.toLowerCase()]: operation(path, route) };
  }
  return {
    openapi: "3.1.1",
    info: {
      title: "Hotpush",
      version: readVersion(),
      description: "Deployments of the projects on this server. For a token: hotpush token create.",
    },
    security: [{ token: [] }],
    paths,
    components: { schemas, securitySchemes: { token: { type: "http", scheme: "bearer" } } },
  };
}

function operation(path: string, { summary, right, status, answer, query = {}, body }: ApiRoute): object {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
  const parameters = [
    ...names.map((name) => ({ name, in: "path", required: true, schema: { type: "string" } })),
    ...Object.entries(query).map(([name, description]) => ({
      ...{ name, in: "query", required: false, description },
      schema: { type: "string" },
    })),
  ];
  const description = typeof status === "number" && status === 202 ? "recorded" : "done";
  return {
    summary,
    ...(right === null ? { security: [] } : { description: `Needs the right to ${right}.` }),
    parameters,
    ...(body && { requestBody: requestBody(body) }),
    responses: {
      [status]: { description, content: contentOf(answer) },
      default: {
        description: "refused, with the reason and what to do",
        content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } },
      },
    },
  };
}

function requestBody(members: Readonly<Record<string, string>>): object {
  const properties = Object.fromEntries(
    Object.entries(members).map(([name, description]) => [name, { type: "string", description }]),
  );
  return { required: false, content: { "application/json": { schema: { type: "object", properties } } } };
}

function contentOf(answer: ApiRoute["answer"]): object {
  if (typeof answer === "string")
    return { "application/json": { schema: { $ref: `#/components/schemas/${answer}` } } };
  return Object.fromEntries(answer.map((type) => [type, {}]));
}
