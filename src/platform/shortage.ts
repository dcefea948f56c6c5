const shortages: readonly (string | undefined)[] = ["EMFILE", "ENFILE", "ENOMEM", "EAGAIN"];

/** True if `error` says that the machine is short of descriptors, memory or processes, which can resolve by itself. */
export function isShortage(error: unknown): boolean {
  return shortages.includes((error as NodeJS.ErrnoException).code);
}

/** True for any error of the operating system, as against a fault in this program. */
export function isSystemError(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).errno !== undefined;
}
