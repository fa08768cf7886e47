import { z } from 'zod';
import { parseJsonBytes } from '../../../shared/model/json.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { Secret } from '../../../shared/model/secret.ts';
import type { SourceOf } from '../../../shared/wire/sources/source_table.ts';
import { secretValue } from '../../../shared/wire/secrets.ts';
import type { Outbound, OutboundReply } from '../../kernel/outbound.ts';
import { signAssertion } from './sign_jwt.ts';
import { keyProblem } from './token_source.ts';
import type { MintFailure, Minting, MintPlan } from './source_port.ts';

type KvSource = SourceOf<'vault_kv'>;
type Source = KvSource | SourceOf<'vault_lease'>;

/** A secret of Vault has at most 1 MiB. */
const LIMITS = { maxReplyBytes: 2 * 1024 * 1024, timeoutMs: 12_000 };

interface VaultCall {
  readonly source: Source;
  readonly outbound: Outbound;
  /** Below `/v1`. */
  readonly path: string;
  /** Absent: before a login. */
  readonly token?: Secret;
  /** Present: it is posted. */
  readonly json?: object;
}

/** A call of the HTTP API of Vault and OpenBao. Redirects are not followed: the token would go to another host. */
async function callVault({
  source,
  outbound,
  path,
  token,
  json,
}: VaultCall): Promise<Result<OutboundReply, MintFailure>> {
  const headers = {
    accept: 'application/json',
    'user-agent': 'svc',
    'x-vault-request': 'true',
    ...(source.namespace !== undefined && { 'x-vault-namespace': source.namespace }),
    ...(token !== undefined && { 'x-vault-token': token.reveal() }),
    ...(json !== undefined && { 'content-type': 'application/json' }),
  };
  const called = await outbound.call({
    method: json === undefined ? 'GET' : 'POST',
    url: urlOf(source, path),
    anyPort: true,
    headers,
    body: json === undefined ? null : new TextEncoder().encode(JSON.stringify(json)),
    limits: LIMITS,
  });
  return called.ok ? called : failed(called.error.message);
}

const loggedIn = z.object({
  auth: z.object({
    client_token: z.string().regex(/^[\x21-\x7e]{1,8192}$/),
    /** In seconds; 0: it does not end. */
    lease_duration: z.number().int().nonnegative().default(0),
  }),
});

const DEFAULT_ALGORITHM = 'RS256';

/** A token, and how many seconds it is valid, if the login said it. */
export interface Access {
  readonly token: Secret;
  readonly lifeSeconds: number | null;
}

type VaultMinting = Minting<'vault_kv'> | Minting<'vault_lease'>;

/** The token of the source, or one of a login. */
export async function openAccess(minting: VaultMinting): Promise<Result<Access, MintFailure>> {
  const { source, key, outbound } = minting;
  if (source.authentication === 'token') return ok({ token: key, lifeSeconds: null });
  const proof = await proofOf(minting);
  if (!proof.ok) return proof;
  const called = await callVault({ source, outbound, path: `auth/${authMount(source)}/login`, json: proof.value });
  if (!called.ok) return called;
  const why = source.authentication === 'jwt' ? JWT_WHY : LOGIN_WHY;
  if (called.value.status !== 200) return failed(refusalOf(source, called.value.status, why));
  const { data } = loggedIn.safeParse(parseJsonBytes(called.value.body));
  if (data === undefined) return failed(`the answer of ${hostOf(source)} is not that of a login`);
  const { client_token: token, lease_duration: seconds } = data.auth;
  return ok({ token: new Secret(token), lifeSeconds: seconds === 0 ? null : seconds });
}

/** What a login sends: the two ids of an AppRole, or a JWT that the key signs. */
async function proofOf({ source, key, nowMs }: VaultMinting): Promise<Result<object, MintFailure>> {
  if (source.authentication === 'approle') return ok({ role_id: source.role_id, secret_id: key.reveal() });
  const { issuer: iss, subject: sub, audience: aud, algorithm = DEFAULT_ALGORITHM, key_id: keyId, role } = source;
  const claims = { iss, sub, ...(aud !== undefined && { aud }) };
  const signed = await signAssertion(key, { algorithm, keyId, claims }, nowMs);
  return signed.ok ? ok({ ...(role !== undefined && { role }), jwt: signed.value.reveal() }) : signed;
}

/** Who a source is at Vault, in words. */
export function identityOf(source: Source): MintPlan['identity'] {
  if (source.authentication === 'token') return 'the token of the source';
  const at = `which logs in at auth/${authMount(source)}`;
  if (source.authentication === 'approle') return `the role id ${source.role_id ?? ''}, ${at}`;
  const role = source.role === undefined ? '' : ` as the role ${source.role}`;
  return `${source.subject ?? ''} of ${source.issuer ?? ''}, ${at}${role}`;
}

export async function keyProblemOf(
  { authentication, algorithm = DEFAULT_ALGORITHM }: Source,
  key: Secret,
): Promise<MintFailure | null> {
  if (authentication === 'jwt') return keyProblem(key, algorithm);
  const what = authentication === 'approle' ? 'secret id' : 'token';
  if (/^[\x21-\x7e]{1,8192}$/.test(key.reveal())) return null;
  return { reason: 'invalid_key', message: `it is no ${what}: give it alone, as Vault shows it, without spaces` };
}

/** Ends a token, and with it all that was made for it. Batch tokens cannot be revoked: they end by themselves. */
export async function revokeLogin(
  source: Source,
  token: Secret,
  outbound: Outbound,
): Promise<Result<void, MintFailure>> {
  return revocationOf(source, await callVault({ source, outbound, path: 'auth/token/revoke-self', token, json: {} }));
}

/** Vault answers with 204, or with 200 and warnings. */
function revocationOf(source: Source, called: Result<OutboundReply, MintFailure>): Result<void, MintFailure> {
  if (!called.ok) return called;
  const { status } = called.value;
  return status === 204 || status === 200 ? ok(undefined) : failed(refusalOf(source, status, REVOKE_WHY));
}

const versionFacts = z.object({
  version: z.number().int(),
  deletion_time: z.string().default(''),
  destroyed: z.boolean().default(false),
});
const kvReply = z.object({ data: z.object({ data: z.unknown(), metadata: versionFacts }) });

/** The fields of one version of a secret. */
export interface KvVersion {
  /** Names are those of a stranger: never looked up on an object, which has names of its own. */
  readonly fields: ReadonlyMap<string, unknown>;
  /** When Vault deletes the version; null if it does not. */
  readonly deletedAtMs: number | null;
}

/** Reads the version of a secret that the source names, or the newest. */
export async function readKv(
  source: KvSource,
  token: Secret,
  outbound: Outbound,
): Promise<Result<KvVersion, MintFailure>> {
  const called = await callVault({ source, outbound, path: readPath(source), token });
  if (!called.ok) return called;
  if (source.kv_version === 1) return readFirstKv(source, called.value);
  const host = hostOf(source);
  const { status, body } = called.value;
  if (status !== 200 && status !== 404) return failed(refusalOf(source, status, READ_WHY));
  const { data: reply } = kvReply.safeParse(parseJsonBytes(body));
  if (reply === undefined) return failed(status === 404 ? refusalOf(source, status, READ_WHY) : notKv(source));
  const { data, metadata } = reply.data;
  if (source.version !== undefined && metadata.version !== source.version) {
    return failed(`${host} answered with another version than was asked for, which was discarded`);
  }
  if (metadata.destroyed)
    return failed(`${host} has destroyed version ${metadata.version}: store the secret there anew`);
  if (data === null && metadata.deletion_time !== '') {
    return failed(`version ${metadata.version} is deleted at ${host}: undelete it there, or store the secret anew`);
  }
  if (status !== 200 || typeof data !== 'object' || data === null || Array.isArray(data)) return failed(notKv(source));
  const deletedAtMs = metadata.deletion_time === '' ? null : Date.parse(metadata.deletion_time);
  if (Number.isNaN(deletedAtMs)) return failed(`${host} does not say readably when it deletes the version`);
  return ok({ fields: new Map(Object.entries<unknown>({ ...data })), deletedAtMs });
}

const firstKvReply = z.object({ data: z.record(z.string(), z.unknown()) });

/** The answer of an engine of version 1. One of version 2 answers at this path with 404. */
function readFirstKv(source: KvSource, { status, body }: OutboundReply): Result<KvVersion, MintFailure> {
  if (status !== 200) return failed(refusalOf(source, status, READ_WHY));
  const { data: reply } = firstKvReply.safeParse(parseJsonBytes(body));
  if (reply === undefined) return failed(notKv(source));
  return ok({ fields: new Map(Object.entries<unknown>({ ...reply.data })), deletedAtMs: null });
}

/** The field of a secret that the source names, as a value. */
export function fieldOf(source: Source, fields: ReadonlyMap<string, unknown>): Result<Secret, MintFailure> {
  const value = fields.get(source.field);
  const refuse = (problem: string) => failed(`the field ${source.field} at ${hostOf(source)} ${problem}`);
  if (value === undefined) return refuse('is not in the secret: compare field with "vault read" or "vault kv get"');
  if (typeof value !== 'string') return refuse('is not a text: store the value there as a JSON string');
  const { error } = secretValue.safeParse(value);
  return error === undefined ? ok(new Secret(value)) : refuse(error.issues[0]?.message ?? 'cannot be used');
}

const leaseReply = z.object({
  lease_id: z.string().max(2000),
  lease_duration: z.number().int(),
  data: z.record(z.string(), z.unknown()).nullable(),
});

/** A secret that was made for this read. */
interface Lease {
  readonly id: Secret;
  readonly seconds: number;
  /** As in {@link KvVersion}. */
  readonly fields: ReadonlyMap<string, unknown>;
}

/** Has the engine make a secret. */
export async function readLease(
  source: SourceOf<'vault_lease'>,
  token: Secret,
  outbound: Outbound,
): Promise<Result<Lease, MintFailure>> {
  const called = await callVault({ source, outbound, path: encodePath(source.lease_path), token });
  if (!called.ok) return called;
  const { status, body } = called.value;
  if (status !== 200) return failed(refusalOf(source, status, LEASE_WHY));
  const { data: reply } = leaseReply.safeParse(parseJsonBytes(body));
  if (reply === undefined || reply.data === null || reply.lease_id === '' || reply.lease_duration <= 0) {
    const message = `${hostOf(source)} gives no lease at ${source.lease_path}: compare lease_path; for a secret in a KV engine use the kind vault_kv`;
    return failed(message);
  }
  const fields = new Map(Object.entries<unknown>({ ...reply.data }));
  return ok({ id: new Secret(reply.lease_id), seconds: reply.lease_duration, fields });
}

/** Takes back what was made for a read. */
export async function revokeLease(
  source: SourceOf<'vault_lease'>,
  { token, leaseId, outbound }: { readonly token: Secret; readonly leaseId: Secret; readonly outbound: Outbound },
): Promise<Result<void, MintFailure>> {
  const json = { lease_id: leaseId.reveal() };
  return revocationOf(source, await callVault({ source, outbound, path: 'sys/leases/revoke', token, json }));
}

const tokenFacts = z.object({ data: z.object({ ttl: z.number().int().nonnegative() }) });

/** How many seconds a token is valid, which every lease of it ends with; null if it does not end, or may not ask. */
export async function tokenSeconds(
  source: Source,
  token: Secret,
  outbound: Outbound,
): Promise<Result<number | null, MintFailure>> {
  const called = await callVault({ source, outbound, path: 'auth/token/lookup-self', token });
  if (!called.ok) return called;
  if (called.value.status !== 200) return ok(null);
  const { data } = tokenFacts.safeParse(parseJsonBytes(called.value.body));
  return ok(data === undefined || data.data.ttl === 0 ? null : data.data.ttl);
}

/** The path of the read, below `/v1`. */
export function readPath({ mount, secret_path: path, version, kv_version: engine }: KvSource): string {
  if (engine === 1) return `${encodePath(mount)}/${encodePath(path)}`;
  return `${encodePath(mount)}/data/${encodePath(path)}${version === undefined ? '' : `?version=${version}`}`;
}

export function urlOf({ vault_url: url }: Source, path: string): string {
  return `${url.replace(/\/$/, '')}/v1/${path}`;
}

function hostOf({ vault_url: url }: Source): string {
  return new URL(url).host;
}

/** Where a source reads, in words. */
export function placeOf(source: Source): string {
  const { namespace } = source;
  return `${hostOf(source)}${namespace === undefined ? '' : ` in the namespace ${namespace}`}`;
}

function authMount({ authentication, auth_mount: mount = authentication }: Source): string {
  return encodePath(mount);
}

export function encodePath(path: string): string {
  return path.split('/').map(encodeURIComponent).join('/');
}

function notKv(source: KvSource): string {
  return `the answer of ${hostOf(source)} is not that of a KV engine of version ${source.kv_version ?? 2}: compare vault_url, mount and kv_version`;
}

type Advice = Readonly<Record<number, string>>;

const ACTIVE = 'give the vault_url of the active node, or of a load balancer that knows it';
/** By the status codes of Vault's HTTP API. None of its texts is passed on: they may name more than the source does. */
const WHY: Advice = {
  301: 'a redirect, which is not followed: give the vault_url that it leads to',
  302: 'a redirect, which is not followed: give the vault_url that it leads to',
  307: `a redirect, which is not followed; a standby answers so: ${ACTIVE}`,
  308: 'a redirect, which is not followed: give the vault_url that it leads to',
  412: 'this node has not caught up yet: try again',
  429: `a quota is used up, or the node is a standby: raise the quota, or ${ACTIVE}`,
  472: 'the node is a secondary for disaster recovery: give the vault_url of the primary',
  473: `the node is a performance standby: ${ACTIVE}`,
  500: 'it had an error, or none of its nodes is active: its log says which',
  501: 'it is not initialised: initialise it, or compare vault_url',
  503: 'it is sealed or in maintenance: unseal it, or give the vault_url of a node that is not',
};
const LOGIN_WHY: Advice = {
  ...WHY,
  400: 'it does not accept the role id and the secret id: one is wrong, or the secret id has ended or is used up; give the source again with a new secret id',
  403: 'it does not let this AppRole log in: compare its bound addresses, auth_mount and namespace',
  404: 'there is no AppRole at auth_mount: compare auth_mount and namespace',
};
const JWT_WHY: Advice = {
  ...WHY,
  400: 'it does not accept the JWT: compare issuer, subject, audience, role and key_id with the auth method, its public key with the key of the source, and the clock of the control plane',
  403: 'it does not let this JWT log in: compare role, subject and audience with what the role is bound to, and namespace',
  404: 'there is no JWT auth method at auth_mount: compare auth_mount and namespace',
};
const LEASE_WHY: Advice = {
  ...WHY,
  400: 'it does not accept the request, or the engine cannot make the secret: compare lease_path with "vault read", which says why',
  403: 'the token has ended, or no policy of it allows "read" on lease_path: allow it there, or give the source again with a new key',
  404: 'there is no such role or engine: compare lease_path and namespace',
};
const REVOKE_WHY: Advice = {
  ...WHY,
  400: 'it does not accept the request: a batch token cannot be revoked',
  403: 'the token has ended, or no policy of it allows "update" on sys/leases/revoke: the lease ends by itself',
};
const READ_WHY: Advice = {
  ...WHY,
  400: 'it does not accept the request: compare mount, secret_path and namespace',
  403: 'the token has ended, or no policy of it allows "read" on this path: allow it there, or give the source again with a new token',
  404: 'there is no such secret or version: compare mount, secret_path (without "data/"), version and namespace',
};

function refusalOf(source: Source, status: number, why: Advice): string {
  return `${hostOf(source)} answered with status ${status}${why[status] === undefined ? '' : `: ${why[status]}`}`;
}

function failed(message: string): Result<never, MintFailure> {
  return err({ reason: 'failed', message });
}
