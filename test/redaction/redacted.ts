import type { RedactionStream } from "../../src/redaction/redactor.ts";

/** A secret as most are: letters and digits. */
export const hexSecret = "7d1f0c5e9a3b48d2860e4f7a1b9c3d5e7f20418693ab5cd7ef1829304a5b6c7d";

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
