import { styleText } from "node:util";
import { withoutSteering } from "./printable.ts";

/** The output of a command for a person: plain text if it is piped, with colour and progress on a terminal. */
export interface Terminal {
  readonly isInteractive: boolean;
  readonly columns: number;
  readonly paint: (colour: Colour, text: string) => string;
  /** Writes whole lines. */
  readonly print: (...lines: readonly string[]) => void;
}

export type Colour = "bold" | "dim" | "red" | "green" | "yellow";

const usualColumns = 80;
const tabColumns = 8;

/** The terminal behind `stream`. Any text in NO_COLOR switches colour off, as https://no-color.org defines it. */
export function openTerminal(stream: NodeJS.WriteStream, env: NodeJS.ProcessEnv): Terminal {
  const isInteractive = stream.isTTY === true && env.TERM !== "dumb";
  const hasColour = isInteractive && !env.NO_COLOR;
  return {
    isInteractive,
    columns: isInteractive ? stream.columns || usualColumns : usualColumns,
    paint: (colour, text) => (hasColour ? styleText(colour, text, { validateStream: false }) : text),
    print: (...lines) => stream.write(lines.map((line) => `${line}\n`).join("")),
  };
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
