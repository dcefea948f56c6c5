const unitsBytes = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 } as const;

/**
 * Reads a size such as `25 MiB`, `512KiB` or `26214400B`; a bare number is refused.
 *
 * @returns bytes, or null if `text` is no such size
 */
export function parseSizeBytes(text: string): number | null {
  const match = /^(\d{1,9}) ?(B|KiB|MiB|GiB)$/.exec(text);
  return match ? Number(match[1]) * unitsBytes[match[2] as keyof typeof unitsBytes] : null;
}

/** Formats a size for a person: `512 B`, `1.5 MiB`, `72.4 GiB`. */
export function formatSize(bytes: number): string {
  if (bytes < unitsBytes.KiB) return `${bytes} B`;
  const gibibyte = 1024 * unitsBytes.MiB;
  if (bytes >= gibibyte) return `${Math.round((bytes / gibibyte) * 10) / 10} GiB`;
  const unit = bytes < unitsBytes.MiB ? "KiB" : "MiB";
  return `${Math.round((bytes / unitsBytes[unit]) * 10) / 10} ${unit}`;
}
