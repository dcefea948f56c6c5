import { describeMachine, wasBusy } from "./machine.ts";
import { renderSection, renderTable, renderTargets, type Section } from "./report.ts";

/** The whole of docs/performance.md. */
export function renderDocument(sections: readonly Section[]): string {
  const machine = renderTable({ columns: ["", ""], rows: describeMachine() });
  return `${[introduction, ...(wasBusy ? [busy] : []), renderTargets(sections), "## The machine", machine, ...sections.map(renderSection), repeating].join("\n\n")}\n`;
}

const introduction = `# Performance

This page is written by \`npm run bench\`; do not edit it by hand. What is compared with something else was measured in
turns with it, in the same run and on the same machine, so look at the ratios: the figures themselves are those of this
machine. No test asserts any of them.`;

const busy =
  "**Other programs were busy on this machine when these figures were taken: all of them, and the p99 most of all, are worse than they would be on a quiet one.**";

const repeating = `## To repeat it

\`\`\`sh
apt-get install wrk webhook       # what is missing is left out, and the bench says so
npm ci
npm run bench                     # about ten minutes; writes this page
npm run bench -- --quick          # about a minute; writes nothing
npm run bench -- throughput       # one part: throughput, accept, first-line, start-up, commands, memory, body-size, history, connections
\`\`\`

Let nothing else run meanwhile: senders and receivers share the machine's cores.`;
