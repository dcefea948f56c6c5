/** How a fault is fixed, as far as that can be said exactly. */
export interface Fix {
  /** A shell command for the user that the text names, else for this user. */
  readonly command?: string;
  /** What to write into a file or a form, if no command can do it. */
  readonly change?: string;
}

/** `word` as a POSIX shell takes it for one word. */
export function quote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** The start of a command that runs git in `directory`. */
export function gitIn(directory: string): string {
  return `git -C ${quote(directory)}`;
}
