import { stringify } from "yaml";
import { caddyPorts, machineComposeFile, readList, runVolumes, withListItem } from "./compose-file.ts";

/**
 * The text of this version, with what was added to the one in `text` for projects: checkouts of `run` and ports of Caddy.
 */
export function renewedComposeFile(text: string): string {
  const fresh = machineComposeFile(readList(text, runVolumes).flatMap(checkoutPathOf));
  return [runVolumes, caddyPorts].reduce((renewed, path) => {
    const known = readList(renewed, path).map((item) => JSON.stringify(item));
    const added = readList(text, path).filter((item) => !known.includes(JSON.stringify(item)));
    return added.reduce<string>((all, item) => withListItem(all, path, itemLines(item)), renewed);
  }, fresh);
}

/** A directory that `run` may change, at its own path. */
function checkoutPathOf(volume: unknown): readonly string[] {
  if (typeof volume !== "object" || volume === null || "read_only" in volume) return [];
  const { source, target } = volume as Readonly<Record<string, unknown>>;
  return typeof source === "string" && source === target && !source.includes("$") ? [source] : [];
}

function itemLines(item: unknown): readonly string[] {
  const text = typeof item === "string" ? JSON.stringify(item) : stringify(item, { lineWidth: 0 }).trimEnd();
  return text.split("\n").map((line, index) => `${index === 0 ? "      - " : "        "}${line}`);
}
