import { withoutSteering } from "./printable.ts";

/** What a command writes to for a person: plain text if it is piped, with colour and progress on a terminal. */
export interface Terminal {
  readonly isInteractive: boolean;
  readonly columns: number;
  readonly paint: (colour: Colour, text: string) => string;
  /** Writes whole lines. */
  readonly print: (...lines: readonly string[]) => void;
}

export type Colour = keyof typeof codes;

const codes = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33 } as const;
const usualColumns = 80;
const tabColumns = 8;

/** The terminal behind `stream`; NO_COLOR as https://no-color.org has it: any text in it switches colour off. */
export function openTerminal(stream: NodeJS.WriteStream, env: NodeJS.ProcessEnv): Terminal {
  const isInteractive = stream.isTTY === true && env.TERM !== "dumb";
  const hasColour = isInteractive && !env.NO_COLOR;
  return {
    isInteractive,
    columns: isInteractive ? stream.columns || usualColumns : usualColumns,
    paint: (colour, text) => (hasColour ? `\u001b[${codes[colour]}m${text}\u001b[0m` : text),
    print: (...lines) => stream.write(lines.map((line) => `${line}\n`).join("")),
  };
}

/** What a script printed, so that it cannot steer the terminal that it is shown on; tabs are spaces then. */
export function harmless(line: string): string {
  const [first = "", ...rest] = withoutSteering(line, { kept: "\t" }).split("\t");
  // A tab would jump over what is still on the line from before.
  return rest.reduce(
    (before, part) => before + " ".repeat(tabColumns - (before.length % tabColumns)) + part,
    first,
  );
}
