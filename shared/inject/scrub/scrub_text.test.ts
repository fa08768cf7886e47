import { Buffer } from 'node:buffer';
import { describe, expect, it } from 'vitest';
import { SAMPLE_SEARCH_KEY } from '../testing/sample_requests.ts';
import { compileScrubPatterns } from './patterns.ts';
import { scrubText } from './scrub_text.ts';

const PATTERNS = compileScrubPatterns(['S3CR3T-TOKEN', 'dXNlcjpTM0NSM1Q'], SAMPLE_SEARCH_KEY);

describe('scrubText', () => {
  it('masks every copy in a header line, with its length kept', () => {
    expect(scrubText('Location: /?a=S3CR3T-TOKEN&b=S3CR3T-TOKEN', PATTERNS)).toBe(
      'Location: /?a=************&b=************',
    );
  });

  it('masks a secret within a cookie, in base64', () => {
    const value = Buffer.from('id=S3CR3T-TOKEN;').toString('base64');
    expect(scrubText(`Set-Cookie: s=${value}; Secure`, PATTERNS)).not.toContain(value.slice(4, -4));
  });

  it('returns text without a match unchanged', () => {
    const line = 'X-Odd: caf\u00e9 \u00ff S3CR3T-TOKE';
    expect(scrubText(line, PATTERNS)).toBe(line);
  });

  it('masks nothing if there is nothing to search for', () => {
    expect(scrubText('S3CR3T', compileScrubPatterns([], SAMPLE_SEARCH_KEY))).toBe('S3CR3T');
  });

  it('masks a non-ASCII secret, which a header contains as UTF-8', () => {
    const patterns = compileScrubPatterns(['p\u00e4ssw\u00f6rter'], SAMPLE_SEARCH_KEY);
    const line = `X-Echo: ${Buffer.from('p\u00e4ssw\u00f6rter').toString('latin1')}.`;
    expect(scrubText(line, patterns)).toBe(`X-Echo: ${'*'.repeat(12)}.`);
  });
});
