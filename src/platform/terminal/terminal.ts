import { control } from "./output.ts";
import { withoutSteering } from "./printable.ts";

/** The output of a command for a person: plain text if it is piped, with colour and progress on a terminal. */
export interface Terminal {
  readonly isInteractive: boolean;
  readonly columns: number;
  readonly paint: (colour: Colour, text: string) => string;
  /** Writes whole lines. */
  readonly print: (...lines: readonly string[]) => void;
}

/** The codes that begin and end each (ECMA-48, "Select graphic rendition"). */
const colours = { bold: [1, 22], dim: [2, 22], red: [31, 39], green: [32, 39], yellow: [33, 39] } as const;

export type Colour = keyof typeof colours;

const usualColumns = 80;
const tabColumns = 8;

/** The terminal behind `stream`. Any text in NO_COLOR switches colour off, as https://no-color.org defines it. */
export function openTerminal(stream: NodeJS.WriteStream, env: NodeJS.ProcessEnv): Terminal {
  const isInteractive = stream.isTTY === true && env.TERM !== "dumb";
  const hasColour = isInteractive && !env.NO_COLOR;
  return {
    isInteractive,
    columns: isInteractive ? stream.columns || usualColumns : usualColumns,
    paint: (colour, text) => (hasColour ? painted(text, colours[colour]) : text),
    print: (...lines) => stream.write(lines.map((line) => `${line}\n`).join("")),
  };
}

function painted(text: string, [begin, end]: readonly [number, number]): string {
  return `${control(`${begin}m`)}${text}${control(`${end}m`)}`;
}

/** A line of a script without what could steer the terminal that it is shown on; tabs become spaces. */
export function harmless(line: string): string {
  const [first = "", ...rest] = withoutSteering(line, { kept: "\t" }).split("\t");
  // A tab would jump over what the line showed before.
  return rest.reduce(
    (before, part) => before + " ".repeat(tabColumns - (before.length % tabColumns)) + part,
    first,
  );
}
