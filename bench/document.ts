import { describeMachine, wasBusy } from "./machine.ts";
import { renderSection, renderTable, renderTargets, type Section } from "./report.ts";

/**
 * The whole of docs/performance.md.
 *
 * @param rollouts the section that bench:rollout has written, copied unchanged
 */
export function renderDocument(sections: readonly Section[], rollouts: string | null): string {
  const machine = renderTable({ columns: ["", ""], rows: describeMachine() });
  const parts = [
    introduction,
    ...(wasBusy ? [busy] : []),
    renderTargets(sections),
    "## The machine",
    machine,
    ...sections.map(renderSection),
    ...(rollouts === null ? [] : [rollouts]),
    repeating,
  ];
  return `${parts.join("\n\n")}\n`;
}

const introduction = `# Performance

\`npm run bench\` writes this page, and \`npm run bench:rollout\` its sections on roll-outs; do not edit it by hand. Programs
that are compared were measured in turns, in the same run and on the same machine. So look at the ratios: the figures
themselves depend on this machine. No test asserts any of them.`;

const busy =
  "**Other programs were busy on this machine during the measurements: all figures, the p99 most of all, are worse than on an idle machine.**";

const repeating = `## To repeat it

\`\`\`sh
apt-get install wrk webhook       # if one is missing, its part is left out, and the bench says so
npm ci
npm run bench                     # about ten minutes; writes this page
npm run bench -- --quick          # about a minute; writes nothing
npm run bench:rollout             # half an hour; writes the sections on roll-outs
npm run bench -- throughput       # one part: throughput, accept, first-line, start-up, commands, memory, projects, body-size, history, connections
HOTPUSH_BENCH_BEFORE=../other npm run bench -- before    # against the version in another checkout, after npm ci there
\`\`\`

Run nothing else meanwhile: senders and receivers share the machine's cores.`;
