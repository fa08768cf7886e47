const ALNUM = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
const LOWER = 'abcdefghijklmnopqrstuvwxyz0123456789';
const HEX = '0123456789abcdef';
const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
const DIGITS = '0123456789';

const ALPHABETS = { alnum: ALNUM, lower: LOWER, hex: HEX, digits: DIGITS, base32: BASE32 } as const;
export type Alphabet = keyof typeof ALPHABETS;

/** Secure random bytes. */
export type RandomBytes = (count: number) => Uint8Array;
type Shape = (text: (alphabet: string, length: number) => string) => string;

/**
 * Token formats of well-known services, so that a client that checks the format of its credential accepts the placeholder.
 * Checksums inside a token are not imitated, so that a secret scanner does not report the placeholder as a live token.
 */
const SHAPES: readonly (readonly [suffix: string, Shape])[] = [
  ['github.com', (text) => `ghp_${text(ALNUM, 36)}`],
  ['gitlab.com', (text) => `glpat-${text(ALNUM, 20)}`],
  ['api.openai.com', (text) => `sk-proj-${text(ALNUM, 48)}`],
  ['api.anthropic.com', (text) => `sk-ant-api03-${text(ALNUM, 93)}AA`],
  ['openrouter.ai', (text) => `sk-or-v1-${text(HEX, 64)}`],
  ['api.stripe.com', (text) => `sk_test_${text(ALNUM, 24)}`],
  ['slack.com', (text) => `xoxb-${text(DIGITS, 12)}-${text(DIGITS, 12)}-${text(ALNUM, 24)}`],
  ['huggingface.co', (text) => `hf_${text(ALNUM, 34)}`],
  ['googleapis.com', (text) => `AIza${text(ALNUM, 35)}`],
  ['api.digitalocean.com', (text) => `dop_v1_${text(HEX, 64)}`],
  ['api.linear.app', (text) => `lin_api_${text(ALNUM, 40)}`],
  ['api.notion.com', (text) => `ntn_${text(ALNUM, 46)}`],
  ['api.sendgrid.com', (text) => `SG.${text(ALNUM, 22)}.${text(ALNUM, 43)}`],
  ['supabase.co', jsonWebToken],
  ['auth0.com', jsonWebToken],
];

/** A JWT-like token of three parts: its header and claims parse, but its signature does not verify. */
function jsonWebToken(text: (alphabet: string, length: number) => string): string {
  return `${encodeValue({ alg: 'HS256', typ: 'JWT' })}.${encodeValue({ sub: text(LOWER, 20), exp: 4_102_444_800 })}.${text(ALNUM, 43)}`;
}

function encodeValue(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

/**
 * Generates a placeholder for a credential. It is not secret, has the format that the host's clients expect, and is random, so
 * that no two placeholders are equal. For `sigv4-resign` it takes the place of the access key id.
 */
export function makeSentinel(host: string, scheme: string, randomBytes: RandomBytes): string {
  const text = (alphabet: string, length: number): string => pick(alphabet, length, randomBytes);
  if (scheme === 'sigv4-resign') return `AKIA${text(BASE32, 16)}`;
  const name = host.replace(/^\*\./, '').toLowerCase();
  const shape = SHAPES.find(([suffix]) => name === suffix || name.endsWith(`.${suffix}`))?.[1];
  return shape === undefined ? text(ALNUM, 40) : shape(text);
}

/** That many characters of an alphabet, drawn uniformly. */
export function randomText(alphabet: Alphabet, length: number, randomBytes: RandomBytes): string {
  return pick(ALPHABETS[alphabet], length, randomBytes);
}

/** Draws characters uniformly: bytes beyond the last whole multiple of the alphabet's size are rejected. */
function pick(alphabet: string, length: number, randomBytes: RandomBytes): string {
  const limit = 256 - (256 % alphabet.length);
  let text = '';
  while (text.length < length) {
    for (const byte of randomBytes(length)) {
      if (byte < limit && text.length < length) text += alphabet.charAt(byte % alphabet.length);
    }
  }
  return text;
}
