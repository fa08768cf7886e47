/** The most common header names. Each is found by its hash without making a string; any other name is sliced and lower-cased. */
export const WELL_KNOWN_NAMES = [
  'accept',
  'accept-charset',
  'accept-encoding',
  'accept-language',
  'accept-ranges',
  'access-control-allow-credentials',
  'access-control-allow-headers',
  'access-control-allow-methods',
  'access-control-allow-origin',
  'access-control-expose-headers',
  'access-control-max-age',
  'age',
  'allow',
  'alt-svc',
  'anthropic-beta',
  'anthropic-version',
  'authorization',
  'cache-control',
  'cf-cache-status',
  'cf-ray',
  'connection',
  'content-disposition',
  'content-encoding',
  'content-language',
  'content-length',
  'content-location',
  'content-range',
  'content-security-policy',
  'content-type',
  'cookie',
  'date',
  'etag',
  'expect',
  'expires',
  'forwarded',
  'from',
  'host',
  'idempotency-key',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'keep-alive',
  'last-modified',
  'link',
  'location',
  'openai-organization',
  'openai-processing-ms',
  'openai-version',
  'origin',
  'pragma',
  'priority',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'range',
  'referer',
  'referrer-policy',
  'request-id',
  'retry-after',
  'sec-ch-ua',
  'sec-ch-ua-mobile',
  'sec-ch-ua-platform',
  'sec-fetch-dest',
  'sec-fetch-mode',
  'sec-fetch-site',
  'sec-fetch-user',
  'sec-websocket-accept',
  'sec-websocket-extensions',
  'sec-websocket-key',
  'sec-websocket-protocol',
  'sec-websocket-version',
  'server',
  'server-timing',
  'set-cookie',
  'strict-transport-security',
  'te',
  'traceparent',
  'tracestate',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'upgrade-insecure-requests',
  'user-agent',
  'vary',
  'via',
  'www-authenticate',
  'x-amz-content-sha256',
  'x-amz-date',
  'x-amz-id-2',
  'x-amz-request-id',
  'x-amz-security-token',
  'x-api-key',
  'x-cache',
  'x-content-type-options',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-frame-options',
  'x-github-api-version',
  'x-github-media-type',
  'x-github-request-id',
  'x-powered-by',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'x-request-id',
  'x-stainless-arch',
  'x-stainless-async',
  'x-stainless-lang',
  'x-stainless-os',
  'x-stainless-package-version',
  'x-stainless-retry-count',
  'x-stainless-runtime',
  'x-stainless-runtime-version',
  'x-xss-protection',
] as const;

const TABLE_SIZE = 2048;

/** One more character of a name's hash, the same for both cases of a letter. Start from 0. */
export function hashNameCharacter(hash: number, code: number): number {
  return (Math.imul(hash, 0x01000193) ^ (code | 0x20)) | 0;
}

function hashName(name: string): number {
  let hash = 0;
  for (let at = 0; at < name.length; at += 1) hash = hashNameCharacter(hash, name.charCodeAt(at));
  return hash;
}

function slotOf(hash: number): number {
  return (hash ^ (hash >>> 11)) & (TABLE_SIZE - 1);
}

/** If two names share a slot the later one wins, and the other is lower-cased like an unknown name: slower but correct. */
function nameTable(): readonly string[] {
  const table = Array.from({ length: TABLE_SIZE }, () => '');
  for (const name of WELL_KNOWN_NAMES) table[slotOf(hashName(name))] = name;
  return table;
}

const NAME_TABLE = nameTable();

function equalsIgnoringCase(text: string, start: number, lowerName: string): boolean {
  for (let at = 0; at < lowerName.length; at += 1) {
    const code = text.charCodeAt(start + at);
    const lower = code >= 0x41 && code <= 0x5a ? code + 0x20 : code;
    if (lower !== lowerName.charCodeAt(at)) return false;
  }
  return true;
}

/** The name in `text` from `start` to `end`, an ASCII token, in lower case. `hash` is the {@link hashNameCharacter} of its characters. */
export function lowerCaseName(text: string, start: number, end: number, hash: number): string {
  const known = NAME_TABLE[slotOf(hash)] ?? '';
  if (known.length === end - start && equalsIgnoringCase(text, start, known)) return known;
  return text.slice(start, end).toLowerCase();
}
