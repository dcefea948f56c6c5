import { type ConversionConfig, toJsonSchema, toJsonSchemaDefs } from "@valibot/to-json-schema";
import type * as v from "valibot";
import { readVersion } from "#version";
import * as shapes from "./shapes.ts";
import { type Call, isForVisitors, placeOf, rows, statusOf } from "./table.ts";

/** The shapes by their own names. */
const definitions = Object.fromEntries(
  Object.entries(shapes).flatMap(([name, value]) =>
    "kind" in value && value.kind === "schema" ? [[`${name[0]?.toUpperCase()}${name.slice(1)}`, value]] : [],
  ),
) as Record<string, v.GenericSchema>;
const config: ConversionConfig & { readonly definitions: typeof definitions } = {
  definitions,
  errorMode: "ignore",
  typeMode: "output",
  overrideRef: ({ referenceId }) => `#/components/schemas/${referenceId}`,
};

/** The calls that visitors may make over the page. */
export const apiCalls = rows.filter(([, row]) => isForVisitors(row));

/** The document that describes the API, by the table that serves it (OpenAPI 3.1). */
export function openApi(): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const [name, row] of apiCalls) {
    const path = `/api${row.path.replaceAll(/:(\w+)/g, "{$1}")}`;
    paths[path] = { ...paths[path], [row.method.toLowerCase()]: operation(name, row) };
  }
  return {
    openapi: "3.1.1",
    info: {
      title: "Hotpush",
      version: readVersion(),
      description: "Deployments of the projects on this server. For a token: hotpush open --token <name>.",
    },
    security: [{ token: [] }],
    paths,
    components: {
      schemas: toJsonSchemaDefs(definitions, config),
      securitySchemes: { token: { type: "http", scheme: "bearer" } },
    },
  };
}

function operation(operationId: string, row: Call): object {
  const members = Object.entries(row.takes).map(([name, schema]) => {
    const isRequired = (schema as { readonly type: string }).type !== "optional";
    return { name, in: placeOf(row, name), required: isRequired, schema: schemaOf(schema) };
  });
  const body = members.filter((member) => member.in === "body");
  const required = body.filter((member) => member.required).map(({ name }) => name);
  const properties = Object.fromEntries(body.map(({ name, schema }) => [name, schema]));
  const schema = { type: "object", properties, required, additionalProperties: false };
  const success = { description: statusOf(row) === 202 ? "begun" : "done", content: contentOf(row.gives) };
  const problem = { $ref: "#/components/schemas/Problem" };
  return {
    operationId,
    summary: row.does,
    description: `Needs the right of a ${row.right}.`,
    parameters: members.filter((member) => member.in !== "body"),
    ...(row.method === "POST" && {
      requestBody: { required: required.length > 0, content: { "application/json": { schema } } },
    }),
    responses: {
      [statusOf(row)]: success,
      default: {
        description: "refused, with the reason and what to do",
        content: { "application/problem+json": { schema: problem } },
      },
    },
  };
}

function contentOf(gives: Call["gives"]): object {
  if (typeof gives === "string") return { [gives.split(";")[0] ?? ""]: {} };
  return { "application/json": { schema: schemaOf(gives) } };
}

function schemaOf(schema: v.GenericSchema): object {
  const { $schema: _, $defs: __, ...plain } = toJsonSchema(schema, config);
  return plain;
}
