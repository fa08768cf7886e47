/** The kinds of ids, by prefix (design section 7). */
const ID_PREFIXES = [
  'usr',
  /** A person: one or more users, each in its own enterprise. */
  'per',
  'ent',
  'mcp',
  'bnd',
  /** An entry of the list of hosts that are not intercepted. */
  'tnl',
  'crt',
  'con',
  'sec',
  'evt',
  'ses',
  'scp',
  'sdc',
  /** An approval of one connector request. */
  'apr',
  /** A grant: further requests that an approval covers. */
  'apg',
  /** A request that waits for an approval, to be shown to one page. */
  'apv',
  /** A rule about who approves. */
  'apu',
  /** A browser session. */
  'bse',
  /** A sign-in identity of a user. */
  'idn',
  /** An invitation to an enterprise. */
  'inv',
  /** A request to join an enterprise. */
  'jrq',
  /** A group of an enterprise's people. */
  'grp',
  /** A share: what a person lets another person or a group use. */
  'shr',
  /** A sink: a receiver of an enterprise's audit events. */
  'snk',
  /** A personal token. */
  'tok',
  /** A token with which a directory calls the SCIM endpoints. */
  'sct',
  /** A program's sign-in: its access and refresh tokens. */
  'fam',
  /** An MCP client that a person connected: its access and refresh tokens. */
  'mcc',
  /** A control plane: the audience of its sidecars' calls. */
  'cpl',
  /** A login of a program whose tokens wait for a person. */
  'plg',
  /** One request, in replies and logs. */
  'req',
] as const;
export type IdPrefix = (typeof ID_PREFIXES)[number];

/** Crockford's base32, lower-case: no i, l, o or u. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const ID_BYTES = 16;
const ID_CHARACTERS = 26;

/**
 * An id: the prefix, `_`, and 26 characters for 128 bits. The bits are random, but ids made with `nowMs` begin with that
 * time in 48 bits, so that they sort by creation. `randomBytes` are 16 from a secure source.
 */
export function newId(prefix: IdPrefix, randomBytes: Uint8Array, nowMs?: number): string {
  if (randomBytes.length !== ID_BYTES)
    throw new Error(`an id needs ${ID_BYTES} random bytes, not ${randomBytes.length}`);
  let bits = 0n;
  for (const byte of randomBytes) bits = (bits << 8n) | BigInt(byte);
  if (nowMs !== undefined) bits = (BigInt(Math.trunc(nowMs)) << 80n) | (bits & ((1n << 80n) - 1n));
  let text = '';
  for (let index = 0; index < ID_CHARACTERS; index += 1) {
    text = ALPHABET.charAt(Number(bits & 31n)) + text;
    bits >>= 5n;
  }
  return `${prefix}_${text}`;
}

/** The pattern of an id with this prefix. The first character carries three bits, so it is 0 to 7. */
export function idPattern(prefix: IdPrefix): RegExp {
  return new RegExp(`^${prefix}_[0-7][0-9a-hjkmnp-tv-z]{25}$`);
}

/** True if the text is an id with this prefix. */
export function isId(prefix: IdPrefix, text: string): boolean {
  return idPattern(prefix).test(text);
}
