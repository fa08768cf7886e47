import { KeptReplies } from './kept_replies.ts';

/** A raster image, by the type that its first bytes show. */
export interface Icon {
  readonly type: 'image/png' | 'image/jpeg' | 'image/webp' | 'image/gif';
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** The images of a registry's entries by URL. */
export const openIcons = () => new KeptReplies<Icon>(({ bytes }) => bytes.length, 120);

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
