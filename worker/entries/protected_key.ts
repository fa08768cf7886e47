import { createCipheriv, createDecipheriv, randomBytes, scrypt, type ScryptOptions } from 'node:crypto';
import { z } from 'zod';
import { parseJson } from '../../shared/model/json.ts';
import type { KeyProtection } from '../../shared/model/key_protection.ts';
import { Secret } from '../../shared/model/secret.ts';
import type { Keyring } from './os_keyring.ts';
import { ProgramError } from './program_error.ts';

/** What opens a protected file. */
export interface Unlock {
  /** Null: nobody gave one. */
  readonly passphrase: () => Secret | null;
  readonly keyring: Keyring;
}

/** How a file is to be protected, with the secret for it. */
export type Protection =
  | { readonly by: 'passphrase'; readonly passphrase: Secret; readonly cost?: ScryptCost }
  | { readonly by: 'keyring'; readonly id: string; readonly key: Secret };

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
  const common = { version: 1 as const, iv, sealed: '' };
  const unsealed: Envelope =
    protection.by === 'passphrase'
      ? {
          protection: 'passphrase',
          ...common,
          salt: randomBytes(16).toString('base64url'),
          ...(protection.cost ?? COST),
        }
      : { protection: 'keyring', ...common, id: protection.id };
  const cipher = createCipheriv('aes-256-gcm', await keyOf(name, unsealed, protection), Buffer.from(iv, 'base64url'));
  cipher.setAAD(boundTo(name));
  const bytes = Buffer.concat([cipher.update(content, 'utf8'), cipher.final(), cipher.getAuthTag()]);
  return `${JSON.stringify({ ...unsealed, sealed: bytes.toString('base64url') })}\n`;
}

/** A key for the keyring, and the name that it has there: in hex, because a name that begins with - would be an option to `secret-tool`. */
export function newKeyringKey(): Extract<Protection, { by: 'keyring' }> {
  const key = new Secret(randomBytes(KEY_BYTES).toString('base64url'));
  return { by: 'keyring', id: randomBytes(16).toString('hex'), key };
}

async function protectionIn(name: string, read: Envelope, { passphrase, keyring }: Unlock): Promise<Protection> {
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

function keyOf(name: string, read: Envelope, protection: Protection): Promise<Buffer> {
  if (read.protection === 'passphrase' && protection.by === 'passphrase') {
    const { salt, n: N, r, p } = read;
    const maxmem = 128 * N * r * p + 32 * 1024 * 1024;
    return derive(protection.passphrase, Buffer.from(salt, 'base64url'), { N, r, p, maxmem });
  }
  if (read.protection !== 'keyring' || protection.by !== 'keyring') throw damaged(name);
  const key = Buffer.from(protection.key.reveal(), 'base64url');
  if (key.length === KEY_BYTES) return Promise.resolve(key);
  throw new ProgramError('vault_keyring_unavailable', `what the keyring has for ${name} is not its key`);
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
    if (read.protection === 'keyring') throw damaged(name);
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
