import type { RedactionStream } from "../../src/redaction/redactor.ts";

/** A secret as most are: letters and digits. */
export const hexSecret = "7d1f0c5e9a3b48d2860e4f7a1b9c3d5e7f20418693ab5cd7ef1829304a5b6c7d";

/** How programs write a secret down, by name. */
export function encodings(secret: string): Readonly<Record<string, string>> {
  const bytes = Buffer.from(secret);
  const hex = bytes.toString("hex");
  const json = JSON.stringify(secret).slice(1, -1);
  const everyByte = Array.from(bytes, (byte) => `%${byte.toString(16).padStart(2, "0")}`).join("");
  return {
    plain: secret,
    "hex, lower": hex,
    "hex, upper": hex.toUpperCase(),
    "hex in groups": hex.replace(/..(?=.)/g, "$& "),
    "hex with colons": hex.replace(/..(?=.)/g, "$&:"),
    "hex in lines of 60": hex.replace(/.{60}/g, "$&\n"),
    "URL encoding of encodeURIComponent": encodeURIComponent(secret),
    "URL encoding in lower case": encodeURIComponent(secret).replace(/%../g, (code) => code.toLowerCase()),
    "URL encoding of a form": new URLSearchParams({ a: secret }).toString().slice(2),
    "URL encoding of every byte": everyByte,
    "URL encoding of every byte, upper": everyByte.toUpperCase(),
    JSON: json,
    "JSON in ASCII": json.replace(
      /[^ -~]/g,
      (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
    ),
    "JSON in JSON": JSON.stringify(json).slice(1, -1),
    "quoted for a shell": secret.replaceAll("'", "'\\''"),
  };
}

/** Writes the pieces to the stream and ends it. @returns all of its output */
export function redacted(stream: RedactionStream, pieces: readonly Buffer[]): string {
  return Buffer.concat([...pieces.map((piece) => stream.push(piece)), stream.finish()]).toString();
}
