import { randomBytes } from 'node:crypto';
import { CompactEncrypt, CompactSign, type CryptoKey, decodeJwt, exportJWK, generateKeyPair, importJWK } from 'jose';
import { z } from 'zod';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { Failure } from '../../shared/model/failure.ts';
import {
  CREDENTIALS_REPLY_SECONDS,
  CREDENTIALS_TYP,
  credentialsRequest,
  MAX_CALL_SECONDS,
  REVOCATION_TYP,
} from '../../shared/wire/channel.ts';
import { newId } from '../../shared/wire/ids.ts';
import type { HttpCall, HttpClient, HttpFailureReason, HttpReply } from '../../machine/http_call.ts';
import { generateSidecarKeys, type Identity, identityOf } from '../../machine/sidecar_identity.ts';
import type { Moment, TwoClocks } from './two_clocks.ts';

const OUTAGE = err({ reason: 'unreachable' as const, message: 'down for the test' });
const CONTROL_PLANE_ID = newId('cpl', randomBytes(16));
const SIDECAR_ID = newId('sdc', randomBytes(16));

/** A value as it was issued. */
export interface Issued {
  readonly text: string;
  readonly version: number;
  readonly endsAt: number;
  /** When the call that it answers was sent. */
  readonly asked: Moment;
}

/** The keys of both ends, which cost more than a run. */
export interface Enrolment {
  readonly identity: Identity;
  readonly signing: CryptoKey;
  readonly receiving: CryptoKey;
}

export async function enrol(): Promise<Enrolment> {
  const pair = await generateKeyPair('EdDSA', { crv: 'Ed25519', extractable: true });
  const { x = '' } = await exportJWK(pair.publicKey);
  const keys = await generateSidecarKeys();
  const identity = await identityOf({
    version: 1,
    sidecar_id: SIDECAR_ID,
    control_plane_id: CONTROL_PLANE_ID,
    control_plane_key: { kty: 'OKP', crv: 'Ed25519', x },
    signing_key: keys.signing,
    receiving_key: keys.receiving,
  });
  const receiving = await importJWK({ kty: 'OKP', crv: 'X25519', x: keys.receiving.x }, 'ECDH-ES');
  if (receiving instanceof Uint8Array) throw new Error('a symmetric key');
  return { identity, signing: pair.privateKey, receiving };
}

/**
 * A control plane that mints one short-lived value at each path, seen through a client without a network. A test says what happens
 * while a call is on its way there and back. Its clock is the issuer's.
 */
export class MintingControlPlane implements HttpClient {
  isDown = false;
  hasRevoked = false;
  /** Of the secret; null: it was removed. */
  version: number | null = 1;
  lifeMs = 60_000;
  /** What happens on the way of the next calls. */
  readonly onTheWay: { readonly there: () => void; readonly back: () => void }[] = [];
  readonly #clocks: TwoClocks;
  readonly #enrolment: Enrolment;
  readonly #issued = new Map<string, Issued>();
  #current: Omit<Issued, 'asked'> | null = null;

  constructor(clocks: TwoClocks, enrolment: Enrolment) {
    this.#clocks = clocks;
    this.#enrolment = enrolment;
  }

  /** What was released in the newest reply that has this value. */
  issued(text: string): Issued {
    const found = this.#issued.get(text);
    if (found === undefined) throw new Error('a value that nobody issued');
    return found;
  }

  async call(call: HttpCall): Promise<Result<HttpReply, Failure<HttpFailureReason>>> {
    const asked = this.#clocks.moment;
    const way = this.onTheWay.shift();
    way?.there();
    if (this.isDown) return OUTAGE;
    const reply = await this.#answer(call, asked);
    way?.back();
    return ok({ status: reply.status, body: reply.body, header: () => undefined });
  }

  close(): void {}

  async #answer(call: HttpCall, asked: Moment): Promise<{ readonly status: number; readonly body: string }> {
    const { jti: nonce = '', iat = 0 } = decodeJwt(call.headers['authorization']?.slice('Bearer '.length) ?? '');
    const now = this.#clocks.moment.trueMs;
    if (Math.abs(iat * 1000 - now) > MAX_CALL_SECONDS * 1000) {
      return refused(401, 'clock_skew', { server_time: new Date(now).toISOString() });
    }
    if (this.hasRevoked) {
      const proof = await this.#sign(REVOCATION_TYP, { sidecar_id: SIDECAR_ID, nonce });
      return refused(401, 'sidecar_revoked', { proof });
    }
    const request = credentialsRequest.parse(JSON.parse(call.body));
    const value = this.#mint(now, asked);
    const sealed = value === null ? '' : await this.#seal(value.text);
    const payload = {
      sidecar_id: SIDECAR_ID,
      request_id: request.request_id,
      expires_at: new Date(now + CREDENTIALS_REPLY_SECONDS * 1000).toISOString(),
      credentials:
        value === null
          ? []
          : request.credentials.map(({ owner, path }) => {
              const end = new Date(value.endsAt).toISOString();
              return { owner, path, version: String(value.version), sealed, expires_at: end };
            }),
      missing: value === null ? request.credentials.map(({ owner, path }) => ({ owner, path })) : [],
      unavailable: [],
    };
    return { status: 200, body: await this.#sign(CREDENTIALS_TYP, payload) };
  }

  /** A new value after three quarters of the life of the one before. */
  #mint(now: number, asked: Moment): Issued | null {
    if (this.version === null) return null;
    const held = this.#current?.version === this.version ? this.#current : null;
    const isFresh = held !== null && held.endsAt - now > this.lifeMs / 4;
    const text = `minted-${this.#issued.size + 1}-secret`;
    this.#current = isFresh ? held : { text, version: this.version, endsAt: now + this.lifeMs };
    const issued = { ...this.#current, asked };
    this.#issued.set(issued.text, issued);
    return issued;
  }

  #seal(value: string): Promise<string> {
    return new CompactEncrypt(new TextEncoder().encode(JSON.stringify({ value })))
      .setProtectedHeader({ alg: 'ECDH-ES', enc: 'A256GCM' })
      .encrypt(this.#enrolment.receiving);
  }

  #sign(typ: string, payload: object): Promise<string> {
    return new CompactSign(new TextEncoder().encode(JSON.stringify(payload)))
      .setProtectedHeader({ alg: 'EdDSA', typ })
      .sign(this.#enrolment.signing);
  }
}

function refused(status: number, code: string, details: Readonly<Record<string, string>>) {
  const error = { code, message: 'refused for the test.', request_id: newId('req', randomBytes(16)), details };
  return { status, body: JSON.stringify({ error: z.record(z.string(), z.unknown()).parse(error) }) };
}
