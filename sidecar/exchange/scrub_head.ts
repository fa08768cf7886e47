import type { ScrubPatterns } from '../../shared/inject/scrub/patterns.ts';
import { scrubText } from '../../shared/inject/scrub/scrub_text.ts';
import type { HeaderField, ReplyHead } from '../../shared/net/http/http1_head.ts';
import { formatReplyHead } from '../../shared/net/http/http1_head.ts';

/** A head as sent to the client, given the received one; the same bytes if nothing is masked. */
export function scrubHeadBytes(head: ReplyHead, raw: Buffer, patterns: ScrubPatterns): Buffer {
  if (patterns.isEmpty || patterns.find(raw).length === 0) return raw;
  return Buffer.from(formatReplyHead(scrubHead(head, patterns)), 'latin1');
}

/** A reply's head with every match masked. Its status line and its header lines keep their shape. */
export function scrubHead(head: ReplyHead, patterns: ScrubPatterns): ReplyHead {
  const { startLine, reason } = head;
  const beforeReason = startLine.slice(0, startLine.length - reason.length);
  return {
    ...head,
    startLine: beforeReason + scrubText(reason, patterns),
    fields: head.fields.map((field) => scrubField(field, patterns)),
  };
}

function scrubField(field: HeaderField, patterns: ScrubPatterns): HeaderField {
  const line = scrubLine(field.line, patterns);
  return line === field.line ? field : { ...field, line };
}

/** A trailer section with every match masked: lines, each with its CRLF. */
export function scrubTrailers(trailers: string, patterns: ScrubPatterns): string {
  if (trailers === '') return '';
  return trailers.replaceAll(/[^\r\n]+/g, (line) => scrubLine(line, patterns));
}

/** Keeps the colon between name and value even if a masked credential spans it: a line without a colon is not a header line. */
function scrubLine(line: string, patterns: ScrubPatterns): string {
  const scrubbed = scrubText(line, patterns);
  const colon = line.indexOf(':');
  return scrubbed === line ? line : `${scrubbed.slice(0, colon)}:${scrubbed.slice(colon + 1)}`;
}
