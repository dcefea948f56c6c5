/**
 * What is shorter stands in ordinary output by chance ("root", "5432"), and stars in its place would tell where it
 * stands; its base64 would be five characters of which any text has some.
 */
export const leastRedactedBytes = 6;
/** Of a value of several lines, such as a private key, each line by itself is redacted, if it is this long. */
const leastLineBytes = 12;

/** Values that everybody knows: redacting them hides nothing and makes the output hard to read. */
const commonWords = new Set(
  [
    "changeme change-me default disabled docker enabled example localhost mariadb master mongodb mysql password",
    "postgres postgresql production rabbitmq secret staging development testing undefined",
  ].flatMap((line) => line.split(" ")),
);

/** A whole line of PEM that only says what follows. */
const pemBoundary = /^-----(?:BEGIN|END) [A-Z\d ]+-----$/;

/** What of `value` is to be looked for in output: it, or its lines; nothing where that would make no sense. */
export function redactedPartsOf(value: string): readonly string[] {
  const lines = value.trim().split(/\s*\n\s*/);
  const least = lines.length === 1 ? leastRedactedBytes : leastLineBytes;
  return lines.filter(
    (line) => Buffer.byteLength(line) >= least && !isCommon(line) && !pemBoundary.test(line),
  );
}

/** True for a value that would be redacted if only it were longer; a switch or a number is no secret anyway. */
export function isTooShort(value: string): boolean {
  const text = value.trim();
  if (text === "" || isCommon(text) || /^(?:true|false|yes|no|on|off|none|null|\d{1,3})$/i.test(text))
    return false;
  return redactedPartsOf(text).length === 0;
}

function isCommon(text: string): boolean {
  return commonWords.has(text.toLowerCase());
}
