import type { Report } from "./report.ts";

/** Each event as one line of JSON with the time it happened at (`at`, RFC 3339). */
export function reportJson(write: (text: string) => void): Report {
  return (event) => write(`${JSON.stringify({ at: new Date().toISOString(), ...event })}\n`);
}
