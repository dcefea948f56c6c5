import assert from "node:assert/strict";
import { globSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Redactor } from "../../src/redaction.ts";
import { createLineCutter } from "../../src/runner/log-file.ts";
import type { RunningService } from "./service.ts";

/** How programs write a secret down, by name. */
export function encodings(secret: string): Readonly<Record<string, string>> {
  return {
    plain: secret,
    "URL encoding": encodeURIComponent(secret),
    "URL encoding in lower case": encodeURIComponent(secret).replace(/%../g, (code) => code.toLowerCase()),
    JSON: JSON.stringify(secret).slice(1, -1),
  };
}

/** What a log has of output that comes in pieces. */
export function redacted(redactor: Redactor, pieces: readonly Buffer[]): string {
  const lines: string[] = [];
  const cutter = createLineCutter((line) => lines.push(line), redactor);
  for (const piece of pieces) cutter.push(piece);
  cutter.finish();
  return lines.join("\n");
}

/** The output of a service, line by line. */
export function printedBy({ log }: Pick<RunningService, "log">): string[] {
  return [...log.lines.map((line) => JSON.stringify(line)), ...log.otherText];
}

/** The content of all files below `directory`, each byte a character. */
export function contentsOf(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: "utf8" })
    .map((name) => join(directory, name))
    .filter((path) => statSync(path).isFile())
    .map((path) => readFileSync(path, "latin1"));
}

/** The arguments and the environment of every process, as root sees them; one may have ended meanwhile. */
export function processTexts(): string[] {
  return globSync("/proc/[0-9]*/{cmdline,environ}").flatMap((path) => {
    try {
      return [readFileSync(path, "latin1")];
    } catch {
      return [];
    }
  });
}

/** Fails if a secret is in a text, as it is or encoded, also over several lines. */
export function assertNowhere(texts: readonly string[], secrets: readonly string[]): void {
  const forms = secrets.flatMap((secret) => {
    const bytes = Buffer.from(secret);
    const hex = bytes.toString("hex");
    // The characters at both ends of base64 depend on what stands around it.
    const base64 = [0, 1, 2].flatMap((shift) => {
      const shifted = Buffer.concat([Buffer.alloc(shift), bytes]);
      return [shifted.toString("base64"), shifted.toString("base64url")].map((text) => text.slice(4, 24));
    });
    return [secret, encodeURIComponent(secret), hex, hex.toUpperCase(), ...base64];
  });
  for (const text of texts.flatMap((one) => [one, one.replace(/\\n|[\s"]/g, "")])) {
    const shown = forms.find((form) => text.includes(form));
    assert.equal(shown, undefined, `${shown} is in ${text.slice(0, 2_000)}`);
  }
}
