const AT_ONCE = 8;
const MAX_MS = 5_000;

/** What of `fetch` it uses. */
export type FetchHead = (
  url: URL,
  init: {
    readonly method: 'HEAD';
    readonly redirect: 'manual';
    readonly headers: Record<string, string>;
    readonly signal: AbortSignal;
  },
) => Promise<{ readonly ok: boolean; readonly headers: { get(name: string): string | null } }>;

/** The size of archives in bytes, as their registry states it; null if it does not state all of them in time. */
export async function downloadBytes(urls: readonly string[], fetchHead: FetchHead): Promise<number | null> {
  const signal = AbortSignal.timeout(MAX_MS);
  const open = [...urls];
  let sum: number | null = 0;
  const work = async (): Promise<void> => {
    for (let url = open.pop(); url !== undefined && sum !== null; url = open.pop()) {
      const bytes = await bytesOf(url, fetchHead, signal);
      sum = sum === null || bytes === null ? null : sum + bytes;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return sum;
}

async function bytesOf(url: string, fetchHead: FetchHead, signal: AbortSignal): Promise<number | null> {
  try {
    const reply = await fetchHead(new URL(url), { method: 'HEAD', redirect: 'manual', headers: {}, signal });
    const length = reply.ok ? Number(reply.headers.get('content-length') ?? Number.NaN) : Number.NaN;
    return Number.isSafeInteger(length) && length >= 0 ? length : null;
  } catch {
    // The install shows whether the registry can be reached.
    return null;
  }
}
