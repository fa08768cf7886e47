import { createHash, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import {
  CompactEncrypt,
  CompactSign,
  type CryptoKey,
  exportJWK,
  generateKeyPair,
  importJWK,
  type JWK,
  jwtVerify,
} from 'jose';
import { z } from 'zod';
import { approvalRequest } from '../../shared/wire/approvals.ts';
import { mcpHealthReport } from '../../shared/wire/mcp/mcp_servers.ts';
import {
  APPROVAL_TYP,
  CALL_TYP,
  type CredentialsRequest,
  credentialsRequest,
  CREDENTIALS_TYP,
  EVENTS_TYP,
  REVOCATION_TYP,
  SNAPSHOT_KNOWS_ALSO_HEADER,
  SNAPSHOT_KNOWS_CERTIFICATES,
  SNAPSHOT_KNOWS_HEADER,
  SNAPSHOT_KNOWS_INACTIVE,
  SNAPSHOT_KNOWS_TUNNELS,
  SNAPSHOT_PROOF_HEADER,
  SNAPSHOT_PROOF_TYP,
  SNAPSHOT_TYP,
  unsealedRequest,
} from '../../shared/wire/channel.ts';
import { AUDIT_HEADS_TYP, type AuditHead, readKnownHeads } from '../../shared/wire/audit_heads.ts';
import { newId } from '../../shared/wire/ids.ts';
import { HELD_LOGIN_TYP, heldLoginRequest, PENDING_LOGIN_TYP } from '../../shared/wire/pending_logins.ts';
import { enrolInput, type SigningKey } from '../../shared/wire/sidecars.ts';
import type { IdentityRecord } from '../../machine/sidecar_identity.ts';
import { FakeApprovals } from './fake_approvals.ts';

/** The part of an events call's body that is read. */
export const sentEvents = z.object({ events: z.array(z.looseObject({ id: z.string() })) });

/** In place of a status: the connection is cut, or no reply is ever sent. */
export const CUT = 0;
export const SILENT = -1;
export const LOCAL_KEY = `svc_local_${'k'.repeat(43)}`;

interface StoredSecret {
  readonly owner: string;
  readonly path: string;
  readonly value: string;
  readonly version: string;
  /** For an access token. */
  readonly expires_at?: string;
}

interface Call {
  readonly method: string;
  readonly target: string;
  readonly body: string;
  readonly nonce: string;
}

export type Reply = { readonly status: number; readonly body?: string; readonly headers?: Record<string, string> };

/**
 * A control plane with real keys behind node:http. It checks each call as the real one does; a test changes its state, or
 * sets `tamper` to make a reply wrong.
 */
export class FakeControlPlane {
  readonly id = newId('cpl', randomBytes(16));
  version = 1;
  hostBindings: Record<string, unknown>[] = [];
  connectors: Record<string, unknown>[] = [];
  /** Told only to a sidecar that asks for them. */
  inactiveConnectors: Record<string, unknown>[] = [];
  tunnelHosts: string[] = [];
  certificates: unknown[] = [];
  mcpServers: Record<string, unknown>[] = [];
  readonly healthReports: unknown[] = [];
  secrets: StoredSecret[] = [];
  /** The credential reply's entries for references without an access token. */
  unavailable: Record<string, unknown>[] = [];
  /** The login that is open, as the control plane tells it. */
  openLogin: Record<string, unknown> | null = null;
  /** The sealed tokens that arrived for it. */
  readonly sentLogins: string[] = [];
  readonly approvals = new FakeApprovals();
  revoked = false;
  /** Every event in the log, by id, with the number of times it was sent. */
  readonly events = new Map<string, { readonly event: unknown; times: number }>();
  readonly calls: Call[] = [];
  rejectEvent: (event: unknown) => string | null = () => null;
  /** Changes the payload of a JWS before it is signed. */
  tamperPayload: (payload: Record<string, unknown>) => void = () => undefined;
  /** Replaces a finished reply; null leaves it unchanged. */
  tamperReply: (call: Call, reply: Reply) => Reply | null = () => null;
  /** The private part that belongs to `identity.json`. */
  #sidecar: { readonly id: string; readonly signing: CryptoKey; readonly receiving: CryptoKey } | null = null;
  #signing: { readonly privateKey: CryptoKey; readonly publicJwk: JWK } | null = null;
  #server: Server | null = null;
  #port = 0;
  readonly #usedIds = new Set<string>();
  readonly #held = new Set<() => void>();

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get sidecarId(): string {
    return this.#sidecar?.id ?? '';
  }

  /** Listens, on the same port as before if it was stopped. */
  async start(): Promise<void> {
    this.#signing ??= await newSigningKey();
    const server = createServer((request, response) => void this.#handle(request, response));
    await new Promise<void>((resolve) => {
      server.listen(this.#port, '127.0.0.1', resolve);
    });
    this.#server = server;
    this.#port = portOf(server);
  }

  /** Drops every connection and stops listening. */
  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    this.#held.clear();
    if (server === null) return;
    server.closeAllConnections();
    await new Promise((resolve) => {
      server.close(resolve);
    });
  }

  /** Answers the held polls. */
  answerPolls(): void {
    this.version += 1;
    this.answerHeld();
  }

  answerHeld(): void {
    for (const answer of this.#held) answer();
    this.#held.clear();
  }

  /** Enrols a sidecar without a call. */
  async adopt(record: Pick<IdentityRecord, 'signing_key' | 'receiving_key'>): Promise<IdentityRecord> {
    const sidecarId = await this.#enrol(record.signing_key, record.receiving_key);
    return {
      version: 1,
      sidecar_id: sidecarId,
      control_plane_id: this.id,
      control_plane_key: publicKey(this.#signing),
      signing_key: record.signing_key,
      receiving_key: record.receiving_key,
    };
  }

  async #enrol(signing: { readonly x: string }, receiving: { readonly x: string }): Promise<string> {
    this.#sidecar = {
      id: newId('sdc', randomBytes(16)),
      signing: await importPublic({ kty: 'OKP', crv: 'Ed25519', x: signing.x }, 'EdDSA'),
      receiving: await importPublic({ kty: 'OKP', crv: 'X25519', x: receiving.x }, 'ECDH-ES'),
    };
    return this.#sidecar.id;
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = Buffer.concat(await request.toArray()).toString();
    const facts = { method: request.method ?? '', target: request.url ?? '', body };
    const reply = await this.#reply(request, facts);
    const call = { ...facts, nonce: '' };
    const { status, body: text = '', headers = {} } = this.tamperReply(call, reply) ?? reply;
    if (status === SILENT) return;
    if (status === CUT) request.socket.destroy();
    else response.writeHead(status, headers).end(text);
  }

  async #reply(request: IncomingMessage, facts: Omit<Call, 'nonce'>): Promise<Reply> {
    if (facts.target === '/v1/sidecars') return this.#enrolReply(request, facts.body);
    const nonce = await this.#verify(request, facts).catch(() => null);
    if (nonce === null) return errorReply(401, 'invalid_sidecar_call');
    if (facts.method === 'POST' && this.#usedIds.has(nonce)) return errorReply(401, 'replayed_call');
    this.#usedIds.add(nonce);
    const call = { ...facts, nonce };
    this.calls.push(call);
    if (this.revoked) return this.#revocation(nonce);
    if (facts.target.startsWith('/v1/sidecar/snapshot')) return this.#snapshot(request, call);
    if (facts.target === '/v1/sidecar/mcp-health') return this.#takeHealth(call);
    if (facts.target === '/v1/sidecar/unsealed') return this.#unsealed(call);
    if (facts.target.startsWith('/v1/sidecar/approvals')) return this.#approval(call);
    if (facts.target.startsWith('/v1/sidecar/audit-heads')) return this.#tellHeads(call);
    if (facts.target.startsWith('/v1/sidecar/pending-logins/')) return this.#pendingLogin(call);
    return facts.target === '/v1/sidecar/credentials' ? this.#credentials(call) : this.#takeEvents(call);
  }

  async #verify(request: IncomingMessage, facts: Omit<Call, 'nonce'>): Promise<string | null> {
    if (this.#sidecar === null) return null;
    const token = (request.headers.authorization ?? '').replace('Bearer ', '');
    const { payload } = await jwtVerify(token, this.#sidecar.signing, {
      issuer: this.#sidecar.id,
      audience: this.id,
      typ: CALL_TYP,
      algorithms: ['EdDSA'],
    });
    const digest = createHash('sha256').update(facts.body).digest('base64url');
    const bound = payload['htm'] === facts.method && payload['htu'] === facts.target && payload['bd'] === digest;
    const short = (payload.exp ?? 0) - (payload.iat ?? 0) <= 60;
    return bound && short ? (payload.jti ?? null) : null;
  }

  async #enrolReply(request: IncomingMessage, body: string): Promise<Reply> {
    if (request.headers.authorization !== `Bearer ${LOCAL_KEY}`) return errorReply(401, 'unauthenticated');
    const { signing_key: signing, receiving_key: receiving } = enrolInput.parse(JSON.parse(body));
    const sidecarId = await this.#enrol(signing, receiving);
    const reply = { sidecar_id: sidecarId, control_plane_id: this.id, control_plane_key: publicKey(this.#signing) };
    return { status: 201, body: JSON.stringify(reply) };
  }

  async #snapshot(request: IncomingMessage, call: Call): Promise<Reply> {
    const held = request.headers['if-none-match'];
    const wait = Number(new URL(call.target, this.url).searchParams.get('wait'));
    if (held === `"${this.version}"` && wait > 0) {
      await new Promise<void>((resolve) => {
        this.#held.add(resolve);
      });
    }
    const common = { sidecar_id: this.sidecarId, nonce: call.nonce, version: this.version, ...lifetime(24 * 3600) };
    if (held === `"${this.version}"`) {
      return { status: 304, headers: { [SNAPSHOT_PROOF_HEADER]: await this.#sign(SNAPSHOT_PROOF_TYP, common) } };
    }
    const credentials = this.secrets.map(({ owner, path, version }) => ({ owner, path, version }));
    const policy = { host_bindings: this.hostBindings, connectors: this.connectors, mcp_servers: this.mcpServers };
    const knowsInactive = request.headers[SNAPSHOT_KNOWS_HEADER] === SNAPSHOT_KNOWS_INACTIVE;
    const inactive = knowsInactive && { inactive_connectors: this.inactiveConnectors };
    const also = String(request.headers[SNAPSHOT_KNOWS_ALSO_HEADER]).split(', ');
    const knowsTunnels = also.includes(SNAPSHOT_KNOWS_TUNNELS);
    const tunnels = knowsTunnels && { tunnel_hosts: this.tunnelHosts };
    const certificates = also.includes(SNAPSHOT_KNOWS_CERTIFICATES) && { client_certificates: this.certificates };
    const payload = { ...common, ...policy, ...inactive, ...tunnels, ...certificates, credentials };
    const etag = `"${this.version}"`;
    return { status: 200, body: await this.#sign(SNAPSHOT_TYP, payload), headers: { etag } };
  }

  #takeHealth(call: Call): Promise<Reply> {
    this.healthReports.push(mcpHealthReport.parse(JSON.parse(call.body)));
    return Promise.resolve({ status: 204 });
  }

  async #pendingLogin({ method, target, body, nonce }: Call): Promise<Reply> {
    const id = target.split('/').at(-1);
    if (this.openLogin === null || this.openLogin['id'] !== id) return errorReply(404, 'not_found');
    const common = { sidecar_id: this.sidecarId, nonce };
    if (method === 'GET') {
      return { status: 200, body: await this.#sign(PENDING_LOGIN_TYP, { ...common, login: this.openLogin }) };
    }
    this.sentLogins.push(heldLoginRequest.parse(JSON.parse(body)).sealed);
    return { status: 200, body: await this.#sign(HELD_LOGIN_TYP, { ...common, login_id: id }) };
  }

  #unsealed(call: Call): Promise<Reply> {
    const { request_id, reference } = unsealedRequest.parse(JSON.parse(call.body));
    return this.#credentialsReply({ request_id, credentials: [reference] });
  }

  #credentials(call: Call): Promise<Reply> {
    return this.#credentialsReply(credentialsRequest.parse(JSON.parse(call.body)));
  }

  async #credentialsReply(asked: CredentialsRequest): Promise<Reply> {
    const findSecret = (ref: { owner: string; path: string }): StoredSecret | undefined =>
      this.secrets.find(({ owner, path }) => owner === ref.owner && path === ref.path);
    const released = asked.credentials.map(findSecret).filter((secret) => secret !== undefined);
    const credentials = await Promise.all(
      released.map(async ({ value, ...rest }) => ({ ...rest, sealed: await this.seal(value) })),
    );
    const { unavailable } = this;
    const missing = asked.credentials.filter((ref) => findSecret(ref) === undefined);
    const answered = { sidecar_id: this.sidecarId, request_id: asked.request_id, ...lifetime(60) };
    const payload = { ...answered, credentials, missing, unavailable };
    return { status: 200, body: await this.#sign(CREDENTIALS_TYP, payload) };
  }

  async #approval(call: Call): Promise<Reply> {
    const { pathname, searchParams } = new URL(call.target, this.url);
    const requestId = searchParams.get('request_id') ?? '';
    const answer =
      call.method === 'POST'
        ? this.approvals.ask(approvalRequest.parse(JSON.parse(call.body)))
        : await this.approvals.wait(pathname.split('/').at(-1) ?? '', requestId, Number(searchParams.get('wait')));
    if (answer === null) return errorReply(404, 'not_found');
    const payload = { sidecar_id: this.sidecarId, nonce: call.nonce, ...answer };
    return { status: 200, body: await this.#sign(APPROVAL_TYP, payload) };
  }

  /** Its log is only the events: their chain ends at their number. */
  get head(): AuditHead {
    const hash = String(this.events.size).padStart(64, '0');
    return { writer: this.sidecarId, sequence: this.events.size, hash };
  }

  async #tellHeads(call: Call): Promise<Reply> {
    const known = readKnownHeads(new URL(call.target, this.url).searchParams.get('known') ?? '') ?? [];
    const standing = (head: AuditHead) =>
      head.sequence <= this.head.sequence ? ('kept' as const) : ('behind' as const);
    const payload = {
      sidecar_id: this.sidecarId,
      nonce: call.nonce,
      heads: [this.head],
      known: known.map((head) => ({ ...head, standing: standing(head) })),
    };
    return { status: 200, body: await this.#sign(AUDIT_HEADS_TYP, payload) };
  }

  async #takeEvents(call: Call): Promise<Reply> {
    const accepted: string[] = [];
    const rejected: object[] = [];
    const { sequence, hash } = this.head;
    for (const [index, event] of sentEvents.parse(JSON.parse(call.body)).events.entries()) {
      const message = this.rejectEvent(event);
      if (message !== null) rejected.push({ index, id: event.id, message });
      else {
        accepted.push(event.id);
        const known = this.events.get(event.id);
        if (known) known.times += 1;
        else this.events.set(event.id, { event, times: 1 });
      }
    }
    const head = { ...this.head, previous: { sequence, hash } };
    const payload = { sidecar_id: this.sidecarId, nonce: call.nonce, accepted, rejected, head };
    return { status: 200, body: await this.#sign(EVENTS_TYP, payload) };
  }

  async #revocation(nonce: string): Promise<Reply> {
    const payload = { sidecar_id: this.sidecarId, nonce, revoked_at: new Date().toISOString() };
    return errorReply(401, 'sidecar_revoked', { proof: await this.#sign(REVOCATION_TYP, payload) });
  }

  /** Seals a value to the enrolled sidecar. */
  async seal(value: string): Promise<string> {
    if (this.#sidecar === null) throw new Error('no sidecar is enrolled');
    return new CompactEncrypt(Buffer.from(JSON.stringify({ value })))
      .setProtectedHeader({ alg: 'ECDH-ES', enc: 'A256GCM' })
      .encrypt(this.#sidecar.receiving);
  }

  async #sign(typ: string, payload: Record<string, unknown>): Promise<string> {
    if (this.#signing === null) throw new Error('not started');
    this.tamperPayload(payload);
    return new CompactSign(Buffer.from(JSON.stringify(payload)))
      .setProtectedHeader({ alg: 'EdDSA', typ })
      .sign(this.#signing.privateKey);
  }
}

/** A reply with the control API's error body. */
export function errorReply(status: number, code: string, details?: Record<string, unknown>): Reply {
  const error = { code, message: `refused for the test: ${code}.`, request_id: newId('req', randomBytes(16)) };
  return { status, body: JSON.stringify({ error: { ...error, ...(details && { details }) } }) };
}

async function newSigningKey(): Promise<{ privateKey: CryptoKey; publicJwk: JWK }> {
  const pair = await generateKeyPair('EdDSA', { crv: 'Ed25519', extractable: true });
  return { privateKey: pair.privateKey, publicJwk: await exportJWK(pair.publicKey) };
}

function publicKey(signing: { readonly publicJwk: JWK } | null): SigningKey {
  return { kty: 'OKP', crv: 'Ed25519', x: signing?.publicJwk.x ?? '' };
}

async function importPublic(jwk: JWK, alg: string): Promise<CryptoKey> {
  const key = await importJWK(jwk, alg);
  if (key instanceof Uint8Array) throw new Error('a symmetric key');
  return key;
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

function lifetime(seconds: number): { issued_at: string; expires_at: string } {
  const now = Date.now();
  return { issued_at: new Date(now).toISOString(), expires_at: new Date(now + seconds * 1000).toISOString() };
}
