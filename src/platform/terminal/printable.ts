import { stripVTControlCharacters } from "node:util";

/** Control characters, and those that turn the direction of writing round. */
const steering = /[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu;

/** Text that cannot play tricks on a terminal, a log or a page: without colours, control characters and excess. */
export function printable(text: string, mostCharacters = 300): string {
  const plain = withoutSteering(text, { instead: " " });
  return plain.length > mostCharacters ? `${plain.slice(0, mostCharacters - 1)}…` : plain;
}

/** Text without what could steer the terminal that it is shown on, but for the characters in `kept`. */
export function withoutSteering(
  text: string,
  { kept = "", instead = "" }: { readonly kept?: string; readonly instead?: string } = {},
): string {
  return stripVTControlCharacters(text).replace(steering, (found) =>
    kept.includes(found) ? found : instead,
  );
}
