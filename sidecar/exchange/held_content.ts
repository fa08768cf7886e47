import { latin1Bytes, latin1Text } from '../../shared/inject/byte_text.ts';
import type { ScrubPatterns } from '../../shared/inject/scrub/patterns.ts';
import { scrubText } from '../../shared/inject/scrub/scrub_text.ts';
import { showHidden, toShownLine } from '../../shared/model/shown_text.ts';
import { MOST_SHOWN_BYTES } from '../../shared/wire/approval_views.ts';
import type { HeldContent } from '../ports.ts';

/** Searched beyond what is shown, so that a credential across the end is masked. */
const SEARCHED_BYTES = MOST_SHOWN_BYTES + 16 * 1024;
const MOST_LINE_CHARACTERS = 4_000;

interface HeldRequest {
  readonly method: string;
  readonly host: string;
  readonly target: string;
  readonly contentType: string;
  readonly body: readonly Uint8Array[];
}

/** A request as a person may see it: the credential is masked, and hidden characters are written out. */
export function heldContent(
  { method, host, target, contentType, body }: HeldRequest,
  scrub: ScrubPatterns,
): HeldContent {
  const bytes = body.reduce((total, chunk) => total + chunk.length, 0);
  const shown = (text: string): string => toShownLine(scrubText(text, scrub), MOST_LINE_CHARACTERS);
  return {
    line: shown(`${method} https://${host}${target}`),
    content_type: shown(contentType),
    text: bodyText(firstBytes(body), bytes > MOST_SHOWN_BYTES, scrub),
    bytes,
  };
}

function firstBytes(body: readonly Uint8Array[]): Uint8Array {
  const parts: Uint8Array[] = [];
  let left = SEARCHED_BYTES;
  for (const chunk of body) {
    if (left === 0) break;
    const part = chunk.subarray(0, left);
    parts.push(part);
    left -= part.length;
  }
  return Buffer.concat(parts);
}

/** Null for bytes that are not text in UTF-8. A character that is cut off at the end does not count. */
function bodyText(bytes: Uint8Array, isCut: boolean, scrub: ScrubPatterns): string | null {
  const masked = latin1Bytes(scrubText(latin1Text(bytes), scrub)).subarray(0, MOST_SHOWN_BYTES);
  try {
    return showHidden(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(masked, { stream: isCut }));
  } catch {
    return null;
  }
}
