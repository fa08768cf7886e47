/** A raster image, by the type that its first bytes show. */
export interface Icon {
  readonly type: 'image/png' | 'image/jpeg' | 'image/webp' | 'image/gif';
  readonly bytes: Uint8Array<ArrayBuffer>;
}

const KEPT_MS = 24 * 3600_000;
/** A missing image is asked for again after this time. */
const MISSING_MS = 3600_000;
const MAX_BYTES = 4 * 1024 * 1024;
const MAX_KEPT = 2_000;
/** Calls for images in a minute, for all callers. */
const MOST_CALLS = 120;
const MINUTE_MS = 60_000;

/** The images of a registry's entries by URL, in memory. */
export class Icons {
  readonly #kept = new Map<string, { readonly icon: Icon | null; readonly untilMs: number }>();
  #bytes = 0;
  #minute = { begunMs: 0, calls: 0 };

  /** The image, or null inside if there is none; null if that is not known. */
  find(url: string, nowMs: number): { readonly icon: Icon | null } | null {
    const kept = this.#kept.get(url);
    return kept !== undefined && nowMs < kept.untilMs ? kept : null;
  }

  note(url: string, icon: Icon | null, nowMs: number): void {
    this.#keep(url, icon, nowMs + (icon === null ? MISSING_MS : KEPT_MS));
  }

  /** There are too many calls now: the image is looked for again in a minute. */
  postpone(url: string, nowMs: number): void {
    this.#keep(url, null, nowMs + MINUTE_MS);
  }

  #keep(url: string, icon: Icon | null, untilMs: number): void {
    this.#drop(url);
    this.#kept.set(url, { icon, untilMs });
    this.#bytes += icon?.bytes.length ?? 0;
    for (const oldest of this.#kept.keys()) {
      if ((this.#bytes <= MAX_BYTES && this.#kept.size <= MAX_KEPT) || oldest === url) break;
      this.#drop(oldest);
    }
  }

  /** Counts a call; false if there were too many in this minute. */
  mayCall(nowMs: number): boolean {
    if (nowMs - this.#minute.begunMs >= MINUTE_MS) this.#minute = { begunMs: nowMs, calls: 0 };
    this.#minute.calls += 1;
    return this.#minute.calls <= MOST_CALLS;
  }

  #drop(url: string): void {
    this.#bytes -= this.#kept.get(url)?.icon?.bytes.length ?? 0;
    this.#kept.delete(url);
  }
}

/** The image in these bytes, whatever their sender called them; null for anything but a raster image. */
export function readIcon(bytes: Uint8Array<ArrayBuffer>): Icon | null {
  const start = String.fromCharCode(...bytes.subarray(0, 12));
  const type = typeOf(start);
  return type === null ? null : { type, bytes };
}

function typeOf(start: string): Icon['type'] | null {
  if (start.startsWith('\u0089PNG\r\n\u001A\n')) return 'image/png';
  if (start.startsWith('\u00FF\u00D8\u00FF')) return 'image/jpeg';
  if (start.startsWith('RIFF') && start.slice(8) === 'WEBP') return 'image/webp';
  return /^GIF8[79]a/.test(start) ? 'image/gif' : null;
}
