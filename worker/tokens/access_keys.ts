import { type CryptoKey, exportJWK, generateKeyPair, importJWK } from 'jose';
import { Secret } from '../../shared/model/secret.ts';
import { signingKey, type SigningKey } from '../../shared/wire/sidecars.ts';
import { toBase64Url } from '../kernel/encoding.ts';
import { importSigningKey } from '../services/sidecars/sidecar_keys.ts';
import type { Vault } from '../kernel/vault.ts';
import { nowSeconds } from '../kernel/service_context.ts';
import type { Database } from '../store/database.ts';
import { insertFirstKey, listSigningKeys, replaceSigningKey, type SigningKeyRow } from '../store/signing_keys.ts';

/** The lifetime of an access token. */
export const ACCESS_TOKEN_SECONDS = 10 * 60;
/**
 * How long a replaced key still verifies: the lifetime of its last token, plus the time until other workers stop using
 * it.
 */
export const RETIRED_KEY_SECONDS = ACCESS_TOKEN_SECONDS + 2 * 60;

/** How long keys are cached, so that a change reaches every worker. */
const HELD_MS = 60_000;

/** The key that signs access tokens. */
interface Signer {
  readonly kid: string;
  readonly privateKey: CryptoKey;
}

interface Held {
  readonly readAtMs: number;
  readonly signer: Signer;
  readonly verifiers: ReadonlyMap<string, { readonly key: CryptoKey; readonly jwk: SigningKey }>;
}

type TimeSource = { now(): number };

/** The keys of access tokens, read from the database and cached for a minute. */
export class AccessKeys {
  readonly #vault: Vault;
  readonly #clock: TimeSource;
  #held: Held | null = null;

  constructor(vault: Vault, clock: TimeSource) {
    this.#vault = vault;
    this.#clock = clock;
  }

  /** The signing key; created if there is none. */
  async signer(database: Database): Promise<Signer> {
    return (await this.#keys(database, HELD_MS)).signer;
  }

  /** The key for a `kid`; null if there is no valid one. An unknown `kid` may be new, so the database is read again. */
  async verifier(database: Database, kid: string): Promise<CryptoKey | null> {
    const known = (await this.#keys(database, HELD_MS)).verifiers.get(kid);
    return (known ?? (await this.#keys(database, 0)).verifiers.get(kid))?.key ?? null;
  }

  /** The public keys that verify the tokens (RFC 7517). */
  async listPublished(database: Database): Promise<readonly SigningKey[]> {
    const { verifiers } = await this.#keys(database, HELD_MS);
    return Array.from(verifiers.values(), ({ jwk }) => jwk);
  }

  /**
   * Signs with a new key from now on. With `atOnce`, tokens of earlier keys are refused at once rather than when they
   * expire.
   */
  async rotate(database: Database, options: { readonly atOnce: boolean }): Promise<string> {
    const row = await makeKey(this.#vault, this.#clock);
    const now = nowSeconds({ clock: this.#clock });
    const verifiesUntil = options.atOnce ? now : now + RETIRED_KEY_SECONDS;
    const written = await database.write(replaceSigningKey(database, row, { verifiesUntil, nowSeconds: now }));
    if (!written.ok) throw new Error('two key rotations ran at the same time: one of them succeeded');
    this.#held = null;
    return row.id;
  }

  async #keys(database: Database, atMostMs: number): Promise<Held> {
    const now = this.#clock.now();
    if (this.#held !== null && now - this.#held.readAtMs < atMostMs) return this.#held;
    const rows = await this.#rows(database);
    const signing = rows.findLast((row) => row.verifiesUntil === null);
    if (signing === undefined) throw new Error('there is no key to sign access tokens with');
    const verifiers = await Promise.all(
      rows.map(async ({ id, publicKey }) => {
        const jwk = signingKey.parse(JSON.parse(publicKey));
        return [id, { jwk, key: await importSigningKey(jwk) }] as const;
      }),
    );
    const signer = { kid: signing.id, privateKey: await openKey(this.#vault, signing) };
    this.#held = { readAtMs: now, signer, verifiers: new Map(verifiers) };
    return this.#held;
  }

  async #rows(database: Database): Promise<SigningKeyRow[]> {
    const now = nowSeconds({ clock: this.#clock });
    const rows = await listSigningKeys(database, now);
    if (rows.some((row) => row.verifiesUntil === null)) return rows;
    // A conflict means that another worker just created the first key: that one is read.
    await database.write(insertFirstKey(database, await makeKey(this.#vault, this.#clock)));
    return listSigningKeys(database, now);
  }
}

const KEY_ID_BYTES = 12;

async function makeKey(vault: Vault, clock: TimeSource): Promise<SigningKeyRow> {
  const pair = await generateKeyPair('Ed25519', { extractable: true });
  const { kty, crv, x } = await exportJWK(pair.publicKey);
  const id = toBase64Url(crypto.getRandomValues(new Uint8Array(KEY_ID_BYTES)));
  const jwk = signingKey.parse({ kty, crv, x, kid: id, alg: 'EdDSA', use: 'sig' });
  const privateKey = new Secret(JSON.stringify(await exportJWK(pair.privateKey)));
  return {
    id,
    publicKey: JSON.stringify(jwk),
    sealedPrivateKey: await vault.seal(accessKeyPlace(id), privateKey),
    createdAt: new Date(clock.now()).toISOString(),
    verifiesUntil: null,
  };
}

async function openKey(vault: Vault, row: SigningKeyRow): Promise<CryptoKey> {
  const privateKey = await vault.open(accessKeyPlace(row.id), row.sealedPrivateKey);
  if (privateKey === null) throw new Error('the access token key in the database is damaged');
  const key = await importJWK({ ...JSON.parse(privateKey.reveal()), alg: 'EdDSA' }, 'EdDSA');
  if (key instanceof Uint8Array) throw new TypeError('not a private key');
  return key;
}

/** The vault place of a key's private half. */
export function accessKeyPlace(id: string) {
  return { owner: 'installation', path: `access-token-key/${id}`, version: 1 };
}
