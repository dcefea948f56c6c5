/**
 * The commands in what a command has printed, such as `hotpush logs -f 3` in `See: hotpush logs -f 3. Then …`: from the word
 * before which a colon, a bracket or the beginning of an indented line is, to the end of the sentence or of the line.
 */
export function advicesIn(output: string): readonly string[] {
  const pattern =
    /(?:: |\(|; |^ {2,})((?:cd \S+ && )?(?:sudo )?(?:hotpush|docker) [^\n;()<>…]*?)(?=[;)]|\.(?:\s|$)|, | = |$)/gm;
  return [...output.matchAll(pattern)].map(([, command = ""]) => command.trim());
}
