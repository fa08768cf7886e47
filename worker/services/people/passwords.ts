import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import type { Secret } from '../../../shared/model/secret.ts';

/** The cost of a hash (RFC 7914). */
export interface PasswordCost {
  readonly N: number;
  readonly r: number;
  readonly p: number;
}

/** 32 MiB and about a tenth of a second. */
export const PASSWORD_COST: PasswordCost = { N: 2 ** 15, r: 8, p: 3 };
const MAX_MEMORY_BYTES = 64 * 1024 * 1024;
const SALT_BYTES = 16;
const HASH_BYTES = 32;
const FORMAT = 'scrypt';

/** A password's hash, with its salt and cost. */
export async function hashPassword(password: Secret, cost: PasswordCost): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const hash = await derive(password, salt, cost);
  return formatStored(cost, salt.toString('base64url'), hash.toString('base64url'));
}

/** Whether the password has this hash. With null it is false, and takes as long as with a hash of this cost. */
export async function isPassword(password: Secret, known: string | null, cost: PasswordCost): Promise<boolean> {
  const [format, N, r, p, salt = '', hash = ''] = (known ?? hashOfNobody(cost)).split('$');
  if (format !== FORMAT) throw new Error('a password hash in the database has an unknown format');
  const expected = Buffer.from(hash, 'base64url');
  const its = { N: Number(N), r: Number(r), p: Number(p) };
  const isSame = timingSafeEqual(await derive(password, Buffer.from(salt, 'base64url'), its), expected);
  return isSame && known !== null;
}

function formatStored({ N, r, p }: PasswordCost, salt: string, hash: string): string {
  return [FORMAT, N, r, p, salt, hash].join('$');
}

/** A hash that no known password has. */
function hashOfNobody(cost: PasswordCost): string {
  return formatStored(cost, 'A'.repeat(22), 'A'.repeat(43));
}

function derive(password: Secret, salt: Uint8Array, cost: PasswordCost): Promise<Buffer> {
  // Keyboards compose letters differently, so a password is normalised first (Unicode NFKC).
  const text = password.reveal().normalize('NFKC');
  return new Promise((resolve, reject) => {
    scrypt(text, salt, HASH_BYTES, { ...cost, maxmem: MAX_MEMORY_BYTES }, (error, hash) =>
      error === null ? resolve(hash) : reject(error),
    );
  });
}
