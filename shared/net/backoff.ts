/** The pause after the first failed try, and the longest one. */
export interface Backoff {
  readonly firstMs: number;
  readonly mostMs: number;
}

/** How long to wait before the next try after so many failed ones in a row: twice as long each time, up to the longest. */
export function backoffMs(failures: number, { firstMs, mostMs }: Backoff): number {
  if (failures <= 0) return 0;
  return Math.min(mostMs, firstMs * 2 ** (failures - 1));
}
