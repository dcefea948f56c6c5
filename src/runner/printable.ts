import { stripVTControlCharacters } from "node:util";

/** Control characters, and those that turn the direction of writing round. */
const unprintable = /[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu;

/** Text that cannot play tricks on a terminal, a log or a page: without colours, control characters and excess. */
export function printable(text: string, mostCharacters = 300): string {
  const plain = stripVTControlCharacters(text).replace(unprintable, " ");
  return plain.length > mostCharacters ? `${plain.slice(0, mostCharacters - 1)}…` : plain;
}
