/**
 * `node demo/picture.ts`: runs the demo on a terminal and draws its output of one push, and its closing table, to
 * docs/pictures/demo.svg. Light or dark follows the reader's system.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** The chapters of the demo that are drawn. */
const chapters = ["2", "5"];
const columns = 80;
const lineHeightPx = 20;
const columnWidthPx = 8.43;
const marginPx = 24;
const csiStart = "\u001b";
const colours = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

const style = `
text { font: 14px ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace; white-space: pre; fill: #1f2328 }
rect { fill: #f6f8fa; stroke: #d1d9e0 }
.bold { font-weight: 600 } .dim, .gray { fill: #59636e }
.green { fill: #116329 } .red { fill: #b3261e } .yellow { fill: #7d4e00 } .blue { fill: #0550ae } .cyan { fill: #0f6674 } .magenta { fill: #8250df }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } rect { fill: #0d1117; stroke: #30363d } .dim, .gray { fill: #9198a1 }
  .green { fill: #56d364 } .red { fill: #ff7b72 } .yellow { fill: #e3b341 } .blue { fill: #79c0ff } .cyan { fill: #56d4dd } .magenta { fill: #d2a8ff }
}
`;

/** Consecutive characters of one style. */
interface Span {
  readonly text: string;
  readonly classes: readonly string[];
}

const lines = chosen(runDemo().split("\n").map(visible));
const directory = join(import.meta.dirname, "../docs/pictures");
mkdirSync(directory, { recursive: true });
writeFileSync(join(directory, "demo.svg"), draw(lines.map(spansOf)));

/** `script` provides a terminal, so that the demo prints colours. */
function runDemo(): string {
  const demo = `stty cols ${columns}; exec ${process.execPath} ${join(import.meta.dirname, "main.ts")}`;
  return execFileSync("script", ["--quiet", "--return", "--command", demo, "/dev/null"], {
    encoding: "utf8",
    env: { ...process.env, TERM: "xterm-256color", NO_COLOR: "" },
  });
}

/** The final state of a line that was drawn over, such as a progress line. */
function visible(line: string): string {
  const last = line.replace(/\r+$/, "").split("\r").at(-1) ?? "";
  return last.replaceAll(new RegExp(`${csiStart}\\[(?:\\?25[lh]|K)`, "g"), "");
}

function chosen(all: readonly string[]): readonly string[] {
  const chapterOf = (line: string) => /^([1-9]) {2}\S/.exec(plain(line))?.[1];
  let chapter: string | undefined;
  const kept = all.filter((line) => {
    chapter = chapterOf(line) ?? chapter;
    return chapter !== undefined && chapters.includes(chapter);
  });
  const end = kept.findIndex((line) => /^ {3}\d+ pushes accepted/.test(plain(line)));
  return kept
    .slice(0, end + 1)
    .filter((line, at, those) => plain(line) !== "" || plain(those[at - 1] ?? "") !== "");
}

function plain(line: string): string {
  return line.replaceAll(new RegExp(`${csiStart}\\[[\\d;]*m`, "g"), "");
}

/** Select Graphic Rendition: ECMA-48, section 8.3.117. */
function spansOf(line: string): readonly Span[] {
  const spans: Span[] = [];
  let look = new Set<string>();
  for (const part of line.split(new RegExp(`(${csiStart}\\[[\\d;]*m)`))) {
    if (!part.startsWith(csiStart)) {
      if (part !== "") spans.push({ text: part, classes: [...look] });
      continue;
    }
    for (const code of part.slice(2, -1).split(";").map(Number)) look = after(look, code);
  }
  return spans;
}

function after(look: ReadonlySet<string>, code: number): Set<string> {
  const without = (...names: readonly string[]) => new Set([...look].filter((name) => !names.includes(name)));
  if (code === 0) return new Set();
  if (code === 1) return new Set([...look, "bold"]);
  if (code === 2) return new Set([...look, "dim"]);
  if (code === 22) return without("bold", "dim");
  if (code === 39) return without(...colours, "gray");
  if (code === 90) return new Set([...without(...colours), "gray"]);
  const colour = colours[code - 30];
  return colour === undefined ? new Set(look) : new Set([...without(...colours, "gray"), colour]);
}

function draw(rows: readonly (readonly Span[])[]): string {
  const width = Math.round(columns * columnWidthPx + 2 * marginPx);
  const height = rows.length * lineHeightPx + 2 * marginPx;
  const body = rows.map((spans, at) => drawRow(spans, marginPx + (at + 0.75) * lineHeightPx));
  return `<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 ${width} ${height}" role="img">
<title>A push to main, deployed by Hotpush: the output of npm run demo</title>
<style>${style}</style>
<rect width="${width}" height="${height}" rx="10"/>
${body.join("")}</svg>
`;
}

/** Each span is positioned, because the reader's font may be narrower or wider. */
function drawRow(spans: readonly Span[], y: number): string {
  let column = 0;
  const drawn = spans.map(({ text, classes }) => {
    const x = (marginPx + column * columnWidthPx).toFixed(1);
    column += text.length;
    const escaped = text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
    const look = classes.length === 0 ? "" : ` class="${classes.join(" ")}"`;
    return text.trim() === "" ? "" : `<tspan x="${x}"${look}>${escaped}</tspan>`;
  });
  return drawn.length === 0 ? "" : `<text y="${y}">${drawn.join("")}</text>\n`;
}
