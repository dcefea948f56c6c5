/** How many of a container's last log lines are shown. */
export const shownLogLines = 20;

/** What a container left that explains its failure: what its last health check said, and its last log lines. */
export function evidenceOf(healthLog: readonly string[], logLines: readonly string[]): readonly string[] {
  const health = healthLog.slice(-1).flatMap((output) => output.split("\n"));
  return [...section("Last health check:", health), ...section("Last log lines:", logLines)];
}

function section(title: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [title, ...lines.map((line) => `  ${line}`)];
}
