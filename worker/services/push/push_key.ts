import { type CryptoKey, exportJWK, generateKeyPair, importJWK, SignJWT } from 'jose';
import { Secret } from '../../../shared/model/secret.ts';
import { fromBase64Url, toBase64Url } from '../../kernel/encoding.ts';
import { nowSeconds, nowText, type ServiceContext } from '../../kernel/service_context.ts';
import { findPushKey, insertPushKey, type PushKeyRow } from '../../store/people/push_subscriptions.ts';

/** The vault place of the private half. */
export const PUSH_KEY_PLACE = { owner: 'installation', path: 'push-key', version: 1 };
const KEY_ID = 'vapid';
const ALGORITHM = 'ES256';
/** At most a day (RFC 8292 section 2). */
const TOKEN_SECONDS = 12 * 3600;

type KeyContext = Pick<ServiceContext, 'database' | 'vault' | 'clock'>;

/** The public key that browsers subscribe with, as base64url; made when it is first asked for. */
export async function readPushKey(context: KeyContext): Promise<string> {
  return (await keyRow(context)).publicKey;
}

/** Signs for push services: a token for one of them is of no use at another (RFC 8292). */
export interface PushSigner {
  /** The `Authorization` header for the push service of an endpoint. */
  authorize(endpoint: string): Promise<string>;
}

/**
 * `subject`: the origin of this control plane, by which an operator of a push service finds who runs it. Null if the vault cannot open
 * the key.
 */
export async function openPushSigner(context: KeyContext, subject: string): Promise<PushSigner | null> {
  const row = await keyRow(context);
  const key = await openKey(context, row);
  if (key === null) return null;
  const expires = nowSeconds(context) + TOKEN_SECONDS;
  return {
    async authorize(endpoint) {
      const token = await new SignJWT({ aud: new URL(endpoint).origin, exp: expires, sub: subject })
        .setProtectedHeader({ typ: 'JWT', alg: ALGORITHM })
        .sign(key);
      return `vapid t=${token}, k=${row.publicKey}`;
    },
  };
}

async function keyRow(context: KeyContext): Promise<PushKeyRow> {
  const { database } = context;
  const known = await findPushKey(database);
  if (known !== null) return known;
  // A conflict means that another worker just made the key: that one is read.
  await database.write(insertPushKey(database, await makeKey(context)));
  const made = await findPushKey(database);
  if (made === null) throw new Error('the key for push services was not stored');
  return made;
}

async function makeKey(context: KeyContext): Promise<PushKeyRow> {
  const pair = await generateKeyPair(ALGORITHM, { extractable: true });
  const { x = '', y = '' } = await exportJWK(pair.publicKey);
  const privateKey = new Secret(JSON.stringify(await exportJWK(pair.privateKey)));
  return {
    id: KEY_ID,
    publicKey: toBase64Url(Uint8Array.of(4, ...fromBase64Url(x), ...fromBase64Url(y))),
    sealedPrivateKey: await context.vault.seal(PUSH_KEY_PLACE, privateKey),
    createdAt: nowText(context),
  };
}

async function openKey({ vault }: KeyContext, row: PushKeyRow): Promise<CryptoKey | null> {
  const opened = await vault.open(PUSH_KEY_PLACE, row.sealedPrivateKey);
  if (opened === null) return null;
  const key = await importJWK(JSON.parse(opened.reveal()), ALGORITHM);
  if (key instanceof Uint8Array) throw new TypeError('not a private key');
  return key;
}
