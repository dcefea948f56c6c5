import { styleText } from "node:util";

/** True on a terminal that allows colours: https://no-color.org */
export const isFancy = process.stdout.isTTY === true && !process.env.NO_COLOR && process.env.TERM !== "dumb";

type Format = Parameters<typeof styleText>[0];

/** Colours `text` on a terminal. Pad the text first: colour codes count as characters. */
export function paint(format: Format, text: string): string {
  return isFancy && text !== "" ? styleText(format, text, { validateStream: false }) : text;
}
