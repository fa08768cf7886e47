import {
  CompactSign,
  compactDecrypt,
  compactVerify,
  exportJWK,
  generateKeyPair,
  type GenerateKeyPairResult,
  importJWK,
  type JWK,
} from 'jose';
import type { z } from 'zod';
import { CALL_TYP, type CallClaims } from '../../shared/wire/channel.ts';
import { type EnrolReply, enrolReply } from '../../shared/wire/sidecars.ts';

/** Sends a request to a path of the program under test. */
type Send = (path: string, init?: RequestInit) => Promise<Response>;

/** A test sidecar that knows only the wire contract: it signs its calls and verifies the replies. */
export class TestSidecar {
  readonly #send: Send;
  readonly #signing: GenerateKeyPairResult;
  readonly #receiving: GenerateKeyPairResult;
  readonly #now: () => number;
  enrolled: EnrolReply = {
    sidecar_id: '',
    control_plane_id: '',
    control_plane_key: { kty: 'OKP', crv: 'Ed25519', x: '' },
  };

  private constructor(send: Send, signing: GenerateKeyPairResult, receiving: GenerateKeyPairResult, now: () => number) {
    this.#send = send;
    this.#signing = signing;
    this.#receiving = receiving;
    this.#now = now;
  }

  static async make(send: Send, curve: 'X25519' | 'P-256' = 'X25519', now = Date.now): Promise<TestSidecar> {
    const signing = await generateKeyPair('Ed25519', { extractable: true });
    const receiving = await generateKeyPair('ECDH-ES', { crv: curve, extractable: true });
    return new TestSidecar(send, signing, receiving, now);
  }

  async publicKeys(): Promise<{ signing_key: JWK; receiving_key: JWK }> {
    return {
      signing_key: await exportJWK(this.#signing.publicKey),
      receiving_key: await exportJWK(this.#receiving.publicKey),
    };
  }

  async enrol(localKey: string): Promise<Response> {
    const reply = await this.#send('/v1/sidecars', {
      method: 'POST',
      headers: { authorization: `Bearer ${localKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'laptop', ...(await this.publicKeys()) }),
    });
    if (reply.status === 201) this.enrolled = enrolReply.parse(await reply.clone().json());
    return reply;
  }

  /** The claims of a correct call. */
  async claims(method: string, target: string, body: string): Promise<CallClaims> {
    const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(body));
    const iat = Math.floor(this.#now() / 1000);
    return {
      iss: this.enrolled.sidecar_id,
      aud: this.enrolled.control_plane_id,
      htm: method,
      htu: target,
      bd: Buffer.from(digest).toString('base64url'),
      iat,
      exp: iat + 30,
      jti: crypto.randomUUID(),
    };
  }

  async token(claims: object, typ = CALL_TYP): Promise<string> {
    const payload = new TextEncoder().encode(JSON.stringify(claims));
    return new CompactSign(payload).setProtectedHeader({ alg: 'EdDSA', typ }).sign(this.#signing.privateKey);
  }

  /** Sends a call, with the test's changes to its claims. */
  async call(
    method: 'GET' | 'POST',
    target: string,
    options: { body?: unknown; claims?: Partial<CallClaims>; headers?: Record<string, string>; typ?: string } = {},
  ): Promise<Response> {
    const body = options.body === undefined ? '' : JSON.stringify(options.body);
    const token = await this.token({ ...(await this.claims(method, target, body)), ...options.claims }, options.typ);
    const headers = {
      authorization: `Bearer ${token}`,
      ...(body !== '' && { 'content-type': 'application/json' }),
      ...options.headers,
    };
    return this.#send(target, { method, headers, ...(body !== '' && { body }) });
  }

  /** The payload of a reply's JWS, checked with the pinned key; throws if it does not verify or has another type. */
  async verify<T>(jws: string, typ: string, payloadOf: z.ZodType<T>): Promise<T> {
    const { kty, crv, x } = this.enrolled.control_plane_key;
    const key = await importJWK({ kty, crv, x }, 'EdDSA');
    const { payload, protectedHeader } = await compactVerify(jws, key);
    if (protectedHeader.typ !== typ) throw new Error(`the JWS is a ${protectedHeader.typ}, not a ${typ}`);
    return payloadOf.parse(JSON.parse(new TextDecoder().decode(payload)));
  }

  async unseal(jwe: string): Promise<unknown> {
    const { plaintext } = await compactDecrypt(jwe, this.#receiving.privateKey);
    return JSON.parse(new TextDecoder().decode(plaintext));
  }
}
