import type { PageAnswer } from "./answer.ts";
import type { RunClient, Visit } from "./run-client.ts";
import { ask } from "./screens/screen.ts";

const charWidth = 6.6;
const margin = 10;

/** The badge of a project. It holds numbers and nothing else, so there is nothing in it to escape. @throws ProblemError if there is none */
export async function showBadge(run: RunClient, visit: Visit, project: string): Promise<PageAnswer> {
  const { requests, failed } = await ask(run, { ...visit, credential: null }, "badge", { project });
  const number = (count: number) => count.toLocaleString("en-US");
  const text =
    requests === 0
      ? "no requests counted in 90 days"
      : `${number(failed)} of ${number(requests)} requests failed in 90 days`;
  const colour = requests === 0 ? "#57606a" : failed === 0 ? "#1a7f37" : "#b3261e";
  const length = Math.round(text.length * charWidth);
  const width = length + 2 * margin;
  const body = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="20" role="img" aria-label="${text}"><title>${text}</title><rect width="${width}" height="20" rx="3" fill="${colour}"/><text x="${margin}" y="14" fill="#fff" font-family="Verdana,Geneva,sans-serif" font-size="11" textLength="${length}">${text}</text></svg>\n`;
  // It is made to be shown on pages of others.
  const headers = {
    "cross-origin-resource-policy": "cross-origin",
    "cache-control": "public, max-age=300",
  };
  return { kind: "body", status: 200, type: "image/svg+xml", body, headers };
}
