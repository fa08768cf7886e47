import { createCipheriv, createDecipheriv, randomBytes, scrypt, type ScryptOptions } from 'node:crypto';
import { z } from 'zod';
import { parseJson } from '../../shared/model/json.ts';
import type { KeyProtection } from '../../shared/model/key_protection.ts';
import { type KmsKey, parseKmsKey } from '../../shared/model/kms_key.ts';
import { Secret } from '../../shared/model/secret.ts';
import type { Kms } from './kms/kms.ts';
import type { Keyring } from './os_keyring.ts';
import { ProgramError } from './program_error.ts';

/** What opens a protected file. */
export interface Unlock {
  /** Null: nobody gave one. */
  readonly passphrase: () => Secret | null;
  readonly keyring: Keyring;
  readonly kms: Kms;
}

/** How a file is to be protected, with the secret for it. */
export type Protection =
  | { readonly by: 'passphrase'; readonly passphrase: Secret; readonly cost?: ScryptCost }
  | { readonly by: 'keyring'; readonly id: string; readonly key: Secret }
  | { readonly by: 'kms'; readonly key: KmsKey; readonly kms: Kms };

/** What one try of a passphrase costs: 128 bytes times `n` times `r` of memory, and the time to fill them `p` times. */
interface ScryptCost {
  readonly n: number;
  readonly r: number;
  readonly p: number;
}

const base64Url = z.string().regex(/^[A-Za-z0-9_-]{1,1024}$/);
/** The cost comes from the file, so it has an upper bound: 1 GiB and a few seconds. */
const cost = {
  n: z
    .int()
    .min(2)
    .max(2 ** 20),
  r: z.int().min(1).max(8),
  p: z.int().min(1).max(4),
};
const sealed = { version: z.literal(1), iv: base64Url, sealed: base64Url };
const envelope = z.discriminatedUnion('protection', [
  z.strictObject({ protection: z.literal('passphrase'), ...sealed, salt: base64Url, ...cost }),
  z.strictObject({ protection: z.literal('keyring'), ...sealed, id: base64Url }),
  /** `wrapped` is a key of this file alone, in the form that the KMS gives. */
  z.strictObject({
    protection: z.literal('kms'),
    ...sealed,
    key: z.string().max(2_048),
    wrapped: z.string().regex(/^[A-Za-z0-9+/]{1,8192}={0,2}$/),
  }),
]);
type Envelope = z.output<typeof envelope>;

/** 128 MiB and half a second for each try, as OWASP recommends for scrypt. */
const COST: ScryptCost = { n: 2 ** 17, r: 8, p: 1 };
const KEY_BYTES = 32;
const TAG_BYTES = 16;

/** Whether a file's text is a protected key; else it is the key itself. */
export function isProtected(text: string): boolean {
  return text.trimStart().startsWith('{');
}

/** How a file with this text is protected. */
export function protectionOf(name: string, text: string | null): KeyProtection {
  return text === null || !isProtected(text) ? 'none' : readEnvelope(name, text).protection;
}

/** The content of a protected file. Refuses with what a person can do. */
export async function openProtected(name: string, text: string, unlock: Unlock): Promise<string> {
  const read = readEnvelope(name, text);
  return openWith(name, read, await keyOf(name, read, await protectionIn(name, read, unlock)));
}

/** How a file is protected, with the secret for it, so that another one can be protected in the same way. */
export async function findProtection(name: string, text: string, unlock: Unlock): Promise<Protection> {
  return protectionIn(name, readEnvelope(name, text), unlock);
}

/** The text of a file whose content only this protection opens. It opens under its own name only. */
export async function protect(name: string, content: string, protection: Protection): Promise<string> {
  const iv = randomBytes(12).toString('base64url');
  const { envelope: unsealed, key } = await newEnvelope(name, { version: 1, iv, sealed: '' }, protection);
  const cipher = createCipheriv('aes-256-gcm', key, Buffer.from(iv, 'base64url'));
  cipher.setAAD(boundTo(name));
  const bytes = Buffer.concat([cipher.update(content, 'utf8'), cipher.final(), cipher.getAuthTag()]);
  return `${JSON.stringify({ ...unsealed, sealed: bytes.toString('base64url') })}\n`;
}

type Sealed = Pick<Envelope, 'version' | 'iv' | 'sealed'>;

/** `protection` comes first, because it is what a passphrase is asked by. */
async function newEnvelope(
  name: string,
  common: Sealed,
  protection: Protection,
): Promise<{ readonly envelope: Envelope; readonly key: Buffer }> {
  if (protection.by === 'passphrase') {
    const salt = randomBytes(16).toString('base64url');
    const spent = protection.cost ?? COST;
    const key = await derive(protection.passphrase, Buffer.from(salt, 'base64url'), scryptOptions(spent));
    return { envelope: { protection: 'passphrase', ...common, salt, ...spent }, key };
  }
  if (protection.by === 'keyring') {
    return { envelope: { protection: 'keyring', ...common, id: protection.id }, key: keyringKey(name, protection.key) };
  }
  const key = randomBytes(KEY_BYTES);
  const wrapped = await protection.kms.wrap({ key: protection.key, file: name }, new Secret(key.toString('base64')));
  return { envelope: { protection: 'kms', ...common, key: protection.key.name, wrapped }, key };
}

/** A key for the keyring, and the name that it has there: in hex, because a name that begins with - would be an option to `secret-tool`. */
export function newKeyringKey(): Extract<Protection, { by: 'keyring' }> {
  const key = new Secret(randomBytes(KEY_BYTES).toString('base64url'));
  return { by: 'keyring', id: randomBytes(16).toString('hex'), key };
}

async function protectionIn(name: string, read: Envelope, { passphrase, keyring, kms }: Unlock): Promise<Protection> {
  if (read.protection === 'kms') {
    const key = parseKmsKey(read.key);
    if (!key.ok) throw damaged(name);
    return { by: 'kms', key: key.value, kms };
  }
  if (read.protection === 'keyring') {
    const key = await keyring.find(read.id);
    if (key !== null) return { by: 'keyring', id: read.id, key };
    const message = `${name} is protected by the keyring, and this keyring has no key for it: start svc as the user and on the machine where it was protected, with that keyring unlocked, or restore the key from a copy`;
    throw new ProgramError('vault_keyring_unavailable', message);
  }
  const given = passphrase();
  const { n, r, p } = read;
  if (given !== null) return { by: 'passphrase', passphrase: given, cost: { n, r, p } };
  const message = `${name} is protected by a passphrase: start svc at a terminal, or give it in the file that SVC_VAULT_PASSPHRASE_FILE names, or in SVC_VAULT_PASSPHRASE`;
  throw new ProgramError('vault_passphrase_missing', message);
}

async function keyOf(name: string, read: Envelope, protection: Protection): Promise<Buffer> {
  if (read.protection === 'passphrase' && protection.by === 'passphrase') {
    return derive(protection.passphrase, Buffer.from(read.salt, 'base64url'), scryptOptions(read));
  }
  if (read.protection === 'keyring' && protection.by === 'keyring') return keyringKey(name, protection.key);
  if (read.protection !== 'kms' || protection.by !== 'kms') throw damaged(name);
  const plain = await protection.kms.unwrap({ key: protection.key, file: name }, read.wrapped);
  const key = Buffer.from(plain.reveal(), 'base64');
  if (key.length === KEY_BYTES) return key;
  throw new ProgramError('vault_kms_unavailable', `what the KMS has unwrapped for ${name} is not its key`);
}

function keyringKey(name: string, secret: Secret): Buffer {
  const key = Buffer.from(secret.reveal(), 'base64url');
  if (key.length === KEY_BYTES) return key;
  throw new ProgramError('vault_keyring_unavailable', `what the keyring has for ${name} is not its key`);
}

function scryptOptions({ n: N, r, p }: ScryptCost): ScryptOptions {
  return { N, r, p, maxmem: 128 * N * r * p + 32 * 1024 * 1024 };
}

/** The same passphrase typed on two keyboards is one: NFC, and no line break of a file's end. */
function derive(passphrase: Secret, salt: Buffer, options: ScryptOptions): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    scrypt(passphrase.reveal().normalize('NFC'), salt, KEY_BYTES, options, (error, key) =>
      error === null ? resolve(key) : reject(error),
    );
  });
}

function openWith(name: string, read: Envelope, key: Buffer): string {
  const bytes = Buffer.from(read.sealed, 'base64url');
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(read.iv, 'base64url'), {
      authTagLength: TAG_BYTES,
    });
    decipher.setAAD(boundTo(name));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    return Buffer.concat([decipher.update(bytes.subarray(0, -TAG_BYTES)), decipher.final()]).toString('utf8');
  } catch {
    if (read.protection !== 'passphrase') throw damaged(name);
    throw new ProgramError('vault_passphrase_wrong', `the passphrase does not open ${name}, or the file is damaged`);
  }
}

/** The old key and the new one of a change must not take the place of the key. */
function boundTo(name: string): Buffer {
  return Buffer.from(`svc master key\0${name}`);
}

function readEnvelope(name: string, text: string): Envelope {
  const read = envelope.safeParse(parseJson(text));
  if (read.success) return read.data;
  throw damaged(name);
}

function damaged(name: string): ProgramError {
  return new ProgramError('vault_key_damaged', `${name} is a protected key that is damaged: restore it from a copy`);
}
