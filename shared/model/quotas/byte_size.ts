const KIB = 1024;
const MIB = 1024 * KIB;
const GIB = 1024 * MIB;

/** The largest first. */
const UNITS = [
  ['GiB', GIB],
  ['GB', 1_000_000_000],
  ['MiB', MIB],
  ['MB', 1_000_000],
  ['KiB', KIB],
  ['kB', 1000],
] as const;

const BYTES_OF_UNIT = new Map<string, number>([
  ['', 1],
  ['BYTES', 1],
  ...UNITS.map(([unit, bytes]) => [unit.toUpperCase(), bytes] as const),
]);

/** `500MB`, `64 KiB` or `1000` as bytes; null for any other text. */
export function parseSize(text: string): number | null {
  const [, digits, unit = ''] = /^(\d{1,15}) ?([a-z]*)$/i.exec(text) ?? [];
  const bytes = BYTES_OF_UNIT.get(unit.toUpperCase());
  return digits === undefined || bytes === undefined ? null : Number(digits) * bytes;
}

/** `500 MB`, `64 KiB`, `1001 bytes`: exact, in the largest unit of which it is a multiple. */
export function formatSize(bytes: number): string {
  const [unit, size] = UNITS.find(([, each]) => bytes >= each && bytes % each === 0) ?? ['bytes', 1];
  return `${bytes / size} ${unit}`;
}
