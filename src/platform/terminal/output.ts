import { randomInt } from "node:crypto";

/** Control characters but line feed and tab, and those that turn the direction of writing round. */
const steering = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;
const harmlessOnes = "\n\t";

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
  if (harmlessOnes.includes(found)) return found;
  return `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`;
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

/** Does something that moves the cursor by sequences of its own, such as reading an answer. */
export async function uncleaned<Result>(
  stream: NodeJS.WriteStream,
  act: () => Promise<Result>,
): Promise<Result> {
  const { write } = stream;
  // The method of its class is there again.
  Reflect.deleteProperty(stream, "write");
  try {
    return await act();
  } finally {
    stream.write = write;
  }
}
