/** The pause after the first failed try, and the longest one. */
interface Backoff {
  readonly firstMs: number;
  readonly mostMs: number;
}

/** The wait after this many failures in a row: doubles each time, up to the maximum. */
export function backoffMs(failures: number, { firstMs, mostMs }: Backoff): number {
  if (failures <= 0) return 0;
  return Math.min(mostMs, firstMs * 2 ** (failures - 1));
}
