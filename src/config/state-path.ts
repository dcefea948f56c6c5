/** XDG base directory specification: state of a program that outlives it, `$HOME/.local/state` by default. */
export function defaultStatePath({
  XDG_STATE_HOME,
  HOME,
}: Readonly<Record<string, string | undefined>>): string {
  return `${XDG_STATE_HOME || `${HOME || "/var/lib"}/.local/state`}/hotpush`;
}
