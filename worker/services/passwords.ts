import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import type { Secret } from '../../shared/model/secret.ts';

/** The cost of a hash (RFC 7914): 32 MiB and about a tenth of a second. */
const COST = { N: 2 ** 15, r: 8, p: 3, maxmem: 64 * 1024 * 1024 };
const SALT_BYTES = 16;
const HASH_BYTES = 32;
const FORMAT = 'scrypt';

/** A password's hash, with the salt and the cost that it was made with. */
export async function hashPassword(password: Secret): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const hash = await derive(password, salt, COST);
  return [FORMAT, COST.N, COST.r, COST.p, salt.toString('base64url'), hash.toString('base64url')].join('$');
}

/** Whether this is the password of a hash. With null, of nobody: it takes as long, and is false. */
export async function isPassword(password: Secret, stored: string | null): Promise<boolean> {
  const [format, N, r, p, salt = '', hash = ''] = (stored ?? NOBODY).split('$');
  if (format !== FORMAT) throw new Error('a password hash in the database is of an unknown form');
  const cost = { N: Number(N), r: Number(r), p: Number(p), maxmem: COST.maxmem };
  const expected = Buffer.from(hash, 'base64url');
  const isSame = timingSafeEqual(await derive(password, Buffer.from(salt, 'base64url'), cost), expected);
  return isSame && stored !== null;
}

/** A hash that no password is known for. */
const NOBODY = [FORMAT, COST.N, COST.r, COST.p, 'A'.repeat(22), 'A'.repeat(43)].join('$');

function derive(password: Secret, salt: Uint8Array, cost: typeof COST): Promise<Buffer> {
  // One spelling of one password: keyboards differ in how they compose letters (Unicode NFKC).
  const text = password.reveal().normalize('NFKC');
  return new Promise((resolve, reject) => {
    scrypt(text, salt, HASH_BYTES, cost, (error, hash) => (error === null ? resolve(hash) : reject(error)));
  });
}
