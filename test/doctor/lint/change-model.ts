import assert from "node:assert/strict";
import type { ComposeModel, ComposeService } from "../../../src/platform/compose/model.ts";

/** Applies a line such as `services.app.restart: unless-stopped` to the model, as a person does to the file. */
export function changeModel(model: ComposeModel, line: string): ComposeModel {
  const [, name = "", path = "", value = ""] = /^services\.(\w+)\.([\w.]+): (.+)$/.exec(line) ?? [];
  const service = model.services[name] ?? assert.fail(line);
  return { ...model, services: { ...model.services, [name]: changeService(service, path, value) } };
}

function changeService(service: ComposeService, path: string, value: string): ComposeService {
  const [key = "", inner] = path.split(".");
  const removed = /^remove (.+)$/.exec(value)?.[1];
  const added = /^add (\S+):(\S+)$/.exec(value);
  if (key === "labels") {
    const [, label = "", text = ""] = /^(\S+): (.+)$/.exec(value) ?? [];
    const { [removed ?? ""]: _, ...labels } = service.labels ?? {};
    return { ...service, labels: removed === undefined ? { ...labels, [label]: firstOf(text) } : labels };
  }
  if (key === "depends_on") return { ...service, depends_on: { [inner ?? ""]: { condition: value } } };
  if (key === "healthcheck") return { ...service, healthcheck: { interval: "10s" } };
  if (added) {
    const [, source = "", target = ""] = added;
    return { ...service, volumes: [...(service.volumes ?? []), { type: "volume", source, target }] };
  }
  if (removed === undefined) return { ...service, [key]: value };
  const { [key as keyof ComposeService]: _, ...rest } = service;
  return rest;
}

/** Of "live, scale or recreate", what a person chooses; of "a duration such as 90s", the example. */
function firstOf(text: string): string {
  return (/such as (\S+)/.exec(text)?.[1] ?? text.split(",")[0] ?? text).trim();
}
