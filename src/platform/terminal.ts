import { randomInt } from "node:crypto";
import { Writable } from "node:stream";
import { stripVTControlCharacters } from "node:util";
import { CommandError } from "#problems";

/** The output of a command for a person: plain text if it is piped, with colour on a terminal. */
export type Terminal = Readonly<ReturnType<typeof openTerminal>>;

/** The codes that begin and end each (ECMA-48, "Select graphic rendition"). */
const colours = { bold: [1, 22], dim: [2, 22], red: [31, 39], green: [32, 39], yellow: [33, 39] } as const;

export type Colour = keyof typeof colours;

const usualColumns = 80;

/** The terminal behind `stream`. Any text in NO_COLOR switches colour off, as https://no-color.org defines it. */
export function openTerminal(stream: NodeJS.WriteStream, env: NodeJS.ProcessEnv) {
  const isInteractive = stream.isTTY === true && env.TERM !== "dumb";
  const hasColour = isInteractive && !env.NO_COLOR;
  return {
    columns: isInteractive ? stream.columns || usualColumns : usualColumns,
    paint(colour: Colour, text: string): string {
      const [begin, end] = colours[colour];
      return hasColour ? `${control(`${begin}m`)}${text}${control(`${end}m`)}` : text;
    },
    /** Writes whole lines. */
    print(...lines: readonly string[]): void {
      stream.write(lines.map((line) => `${line}\n`).join(""));
    },
  };
}

/**
 * A line of a script without what could steer the terminal that it is shown on. A tab, which would jump over what the line showed
 * before, becomes spaces.
 */
export function harmless(line: string): string {
  return withoutSteering(line.replaceAll("\t", "    "));
}

/** Control characters, and those that turn the direction of writing round. */
const steering = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** What begins the control sequences of this process: nobody else can write it, and tools that measure text skip it. */
const own = `\u001b[${[0, 0, 0].map(() => randomInt(1_000, 10_000)).join(";")};`;

/** A control sequence of our own, such as `31m` or `K`, which `cleanOutput` lets pass. */
export function control(code: string): string {
  return own + code;
}

/** `text` with our own control sequences; all else that steers a terminal is written as in JSON. */
export function cleaned(text: string): string {
  return text
    .split(own)
    .map((part) => part.replace(steering, visible))
    .join("\u001b[");
}

function visible(found: string): string {
  return "\n\t".includes(found) ? found : `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/**
 * Cleans all text that this process writes to the streams: a commit, a server or a program that failed must not steer the
 * terminal of who reads about it. JSON keeps its meaning. Bytes are written as they are.
 */
export function cleanOutput(...streams: readonly NodeJS.WriteStream[]): void {
  for (const stream of streams) {
    const { write } = stream;
    stream.write = ((chunk: string | Uint8Array, ...rest: []) =>
      write.call(stream, typeof chunk === "string" ? cleaned(chunk) : chunk, ...rest)) as typeof write;
  }
}

/** Longer than what is shown, for the control sequences in it. */
const readPerShown = 8;

/**
 * Text that cannot play tricks on a terminal, a log or a page: without colours, control characters and excess. It is cut before it is
 * cleaned, because others choose its length.
 */
export function printable(text: string, mostCharacters = 300): string {
  const plain = withoutSteering(text.slice(0, readPerShown * mostCharacters), { instead: " " });
  return plain.length > mostCharacters ? `${plain.slice(0, mostCharacters - 1)}…` : plain;
}

/**
 * Control sequences (ECMA-48): with a final character, or a text up to its end. Unlike the pattern of Node's
 * `stripVTControlCharacters`, this one takes time in proportion to the text: no sequence runs past the beginning of the next one.
 */
const sequences =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it is about these
  /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c)|\u001b[ -/]*[0-~]/g;

/** Text without what could steer the terminal that it is shown on, but for the characters in `kept`. */
export function withoutSteering(
  text: string,
  { kept = "", instead = "" }: { readonly kept?: string; readonly instead?: string } = {},
): string {
  return text.replace(sequences, "").replace(steering, (found) => (kept.includes(found) ? found : instead));
}

/** Whether a person at a terminal can be asked. */
export function canAsk(): boolean {
  return process.stdin.isTTY === true && process.stdout.isTTY === true;
}

/** Asks for yes or no; an empty answer is no. @throws as `prompt` */
export async function confirm(question: string): Promise<boolean> {
  return /^y(?:es)?$/i.test((await readAnswer(`${question} [y/N]: `)).trim());
}

/**
 * Asks until `read` accepts the answer; an empty one is `proposal`.
 *
 * @throws CommandError on Ctrl-C and at the end of the input
 */
export async function prompt<Value>(
  question: string,
  proposal: string,
  read: (text: string) => Value | null,
): Promise<Value> {
  for (;;) {
    const shown = proposal === "" ? "" : ` [${proposal}]`;
    const value = read((await readAnswer(`${question}${shown}: `)).trim() || proposal);
    if (value !== null) return value;
  }
}

/** Asks for something that nobody may read on the screen: what is typed is not shown. @throws as `prompt` */
export async function promptSecret(question: string): Promise<string> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const answer = await readAnswer(`${question} (it is not shown): `, nowhere);
  process.stdout.write("\n");
  return answer.trim();
}

async function readAnswer(question: string, output: Writable = process.stdout): Promise<string> {
  const { createInterface } = await import("node:readline/promises");
  // readline writes cursor sequences only if it shows what is typed itself: `cleanOutput` would show them.
  const isHidden = output !== process.stdout;
  const terminal = createInterface({ input: process.stdin, output, terminal: isHidden });
  // From here on the terminal shows nothing: who pastes at once must not see it either.
  if (isHidden) process.stdout.write(question);
  const left = new AbortController();
  const leave = () => left.abort();
  process.once("SIGINT", leave);
  for (const event of ["SIGINT", "close"]) terminal.once(event, leave);
  try {
    return await terminal.question(question, { signal: left.signal });
  } catch (error) {
    if (!left.signal.aborted) throw error;
    process.stdout.write("\n");
    throw new CommandError("Nothing more was written.");
  } finally {
    process.off("SIGINT", leave);
    terminal.close();
  }
}

/** `text` if it takes at most `most` columns, else as much of it as fits before an ellipsis. */
export function fit(text: string, most: number): string {
  const characters = [...text];
  const kept = characters.slice(0, Math.max(0, most - 1)).join("");
  return characters.length <= most ? text : `${kept.trimEnd()}…`;
}

const widest = 80;

/**
 * Breaks `text` at spaces into lines of at most `columns`, colours not counted. A longer word stays whole, so that a command
 * or an address can be copied.
 *
 * @param indent what each line but the first begins with; by default the spaces that the text begins with
 */
export function wrapText(text: string, columns: number, indent?: string): readonly string[] {
  const [first = "", ...words] = text.trimStart().split(" ");
  const start = text.slice(0, text.length - text.trimStart().length);
  const lines: string[] = [];
  let line = start + first;
  for (const word of words) {
    const longer = `${line} ${word}`;
    if (stripVTControlCharacters(longer).length <= columns) line = longer;
    else {
      lines.push(line);
      line = (indent ?? start) + word;
    }
  }
  return [...lines, line];
}

/**
 * Breaks `text` into lines that fit a terminal, at most 80 columns. Text for a pipe or a file is not broken.
 *
 * @param indent what each line but the first begins with
 */
export function wrapFor({ columns }: { readonly columns?: number }, text: string, indent = ""): string {
  // A terminal that does not know its width says 0.
  return columns === undefined
    ? text
    : wrapText(text, Math.min(widest, columns || widest), indent).join("\n");
}

/** Rows as lines, each column as wide as its widest cell; the first row is underlined. */
export function formatTable(rows: readonly (readonly string[])[]): readonly string[] {
  const [header, ...rest] = rows.map((row) => [...row]);
  if (!header) return [];
  const widths = header.map((_, column) => Math.max(...rows.map((row) => (row[column] ?? "").length)));
  const line = (row: readonly string[]) => {
    const cells = row.map((cell, column) => cell.padEnd(widths[column] ?? 0));
    return cells.join("  ").trimEnd();
  };
  return [line(header), widths.map((width) => "─".repeat(width)).join("  "), ...rest.map(line)];
}
