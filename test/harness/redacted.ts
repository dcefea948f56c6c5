import type { RedactionStream } from "../../src/redaction.ts";

/** How programs write a secret down, by name. */
export function encodings(secret: string): Readonly<Record<string, string>> {
  return {
    plain: secret,
    "URL encoding": encodeURIComponent(secret),
    "URL encoding in lower case": encodeURIComponent(secret).replace(/%../g, (code) => code.toLowerCase()),
    JSON: JSON.stringify(secret).slice(1, -1),
  };
}

/** Writes the pieces to the stream and ends it. @returns all of its output */
export function redacted(stream: RedactionStream, pieces: readonly Buffer[]): string {
  return Buffer.concat([...pieces.map((piece) => stream.push(piece)), stream.finish()]).toString();
}
