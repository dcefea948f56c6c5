/** Writes a line to standard output. */
export function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
