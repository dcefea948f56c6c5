/** A value in the encodings of common programs, as byte patterns. */
export interface Encodings {
  /** Found as they are. */
  readonly literal: readonly string[];
  /** Base64 and hex, which programs split into lines and groups. */
  readonly encoded: readonly string[];
}

/** An encoding in base64 or hex is only followed over a line end after this many characters. */
export const leastBeforeLineEnd = 6;
/** The least length of an encoding without its beginning, below which ordinary output would match it. */
const leastRemainder = 6;

/** The characters that each encoder leaves as they are, besides letters and digits. */
const unreserved = [
  "-._~", // RFC 3986: curl, jq, Go's PathEscape
  "-._~!'()*", // encodeURIComponent
  "-._~/", // Python's quote
  "-._*", // forms: URLSearchParams, Java
  "-._~!'()*;/?:@&=+$,#", // encodeURI
  "-_.!~*'():", // Go's userinfo and hosts
];

/** All encodings of `value`, each once. Base64 and hex are those of its UTF-8 bytes. */
export function encodingsOf(value: string): Encodings {
  const encoded = [...base64Encodings(value), ...hexEncodings(value)];
  return {
    literal: [...new Set([value, ...urlEncodings(value), ...jsonEncodings(value), ...shellEncodings(value)])],
    encoded: [...new Set(encoded.flatMap(withRemainder))],
  };
}

/**
 * The characters that depend on `value` alone at any position in a longer text. Three bytes make four characters, so there
 * are three variants. The characters at both ends that it shares with its neighbours are left out.
 */
function base64Encodings(value: string): readonly string[] {
  return [0, 1, 2].flatMap((shift) => {
    const bytes = Buffer.concat([Buffer.alloc(shift), Buffer.from(value)]);
    const whole = Math.floor((bytes.length * 8) / 6);
    const first = Math.ceil((shift * 8) / 6);
    return (["base64", "base64url"] as const).map((encoding) => bytes.toString(encoding).slice(first, whole));
  });
}

function hexEncodings(value: string): readonly string[] {
  const hex = Buffer.from(value).toString("hex");
  return [hex, hex.toUpperCase()];
}

function urlEncodings(value: string): readonly string[] {
  return ["", ...unreserved].flatMap((left) => {
    const upper = Array.from(Buffer.from(value), (byte) => percentEncoded(byte, left)).join("");
    const lower = upper.replace(/%../g, (code) => code.toLowerCase());
    return [upper, lower, upper.replaceAll("%20", "+"), lower.replaceAll("%20", "+")];
  });
}

/** If `left` is empty, letters and digits are encoded too. */
function percentEncoded(byte: number, left: string): string {
  const character = String.fromCharCode(byte);
  const isLeft = left !== "" && (/^[A-Za-z\d]$/.test(character) || left.includes(character));
  return isLeft ? character : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
}

/** As JavaScript, Python, PHP and Go write it, and encoded again for JSON within JSON. */
function jsonEncodings(value: string): readonly string[] {
  const json = insideQuotes(value);
  const escaped = (text: string, which: RegExp) => text.replace(which, unicodeEscape);
  const once = [
    json,
    escaped(json, /[^ -~]/g),
    json.replaceAll("/", "\\/"),
    escaped(json.replaceAll("/", "\\/"), /[^ -~]/g),
    escaped(json, /[<>&]/g),
  ];
  return [...once, ...once.map(insideQuotes)];
}

function insideQuotes(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

function unicodeEscape(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** Within single quotes, with backslashes (`printf %q`), and in a compose file. */
function shellEncodings(value: string): readonly string[] {
  return [
    value.replaceAll("'", "'\\''"),
    value.replaceAll("'", `'"'"'`),
    value.replace(/[^\w@%+=:,./-]/g, "\\$&"),
    value.replaceAll("$", () => "$$"),
  ];
}

/** If a line ends within the first characters of an encoding, the next line begins with the rest of it. */
function withRemainder(encoding: string): readonly string[] {
  const rest = encoding.slice(leastBeforeLineEnd - 1);
  return rest.length < leastRemainder ? [encoding] : [encoding, rest];
}
