import { styleText } from "node:util";

/** True where there is a terminal whose owner has nothing against colours: https://no-color.org */
export const isFancy = process.stdout.isTTY === true && !process.env.NO_COLOR && process.env.TERM !== "dumb";

type Format = Parameters<typeof styleText>[0];

/** Colours `text`, or leaves it plain where there is no terminal. To be padded before, for colours take no room. */
export function paint(format: Format, text: string): string {
  return isFancy && text !== "" ? styleText(format, text, { validateStream: false }) : text;
}
