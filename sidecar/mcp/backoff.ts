const FIRST_MS = 500;
const CAP_MS = 60_000;

/** How long to wait before the next try after so many failed ones in a row; twice as long each time, up to a minute. */
export function backoffMs(failures: number): number {
  if (failures <= 0) return 0;
  return Math.min(CAP_MS, FIRST_MS * 2 ** (failures - 1));
}
