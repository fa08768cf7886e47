import { z } from 'zod';
import { parseJsonBytes } from '../../../shared/model/json.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { Secret } from '../../../shared/model/secret.ts';
import type { SourceOf } from '../../../shared/wire/secret_sources.ts';
import { DEFAULT_AUTH_MOUNT } from '../../../shared/wire/sources/vault_kv.ts';
import type { Outbound, OutboundReply } from '../../kernel/outbound.ts';
import type { MintFailure } from './source_port.ts';

type Source = SourceOf<'vault_kv'>;

/**
 * A secret of Vault has at most 1 MiB. The calls of one mint together take less time than the lease on it, so that no other
 * worker begins a second mint.
 */
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
    headers,
    body: json === undefined ? null : new TextEncoder().encode(JSON.stringify(json)),
    limits: LIMITS,
  });
  return called.ok ? called : failed(called.error.message);
}

const loggedIn = z.object({ auth: z.object({ client_token: z.string().regex(/^[\x21-\x7e]{1,8192}$/) }) });

/** A token for the role id and the secret id of an AppRole. */
export async function logIn(
  source: Source,
  secretId: Secret,
  outbound: Outbound,
): Promise<Result<Secret, MintFailure>> {
  const path = `auth/${authMount(source)}/login`;
  const json = { role_id: source.role_id, secret_id: secretId.reveal() };
  const called = await callVault({ source, outbound, path, json });
  if (!called.ok) return called;
  if (called.value.status !== 200) return failed(refusalOf(source, called.value.status, LOGIN_WHY));
  const { data } = loggedIn.safeParse(parseJsonBytes(called.value.body));
  if (data === undefined) return failed(`the answer of ${hostOf(source)} is not that of a login`);
  return ok(new Secret(data.auth.client_token));
}

/** Ends the token of a login. A refusal changes nothing: batch tokens cannot be revoked, and each token ends by itself. */
export async function revokeLogin(source: Source, token: Secret, outbound: Outbound): Promise<void> {
  await callVault({ source, outbound, path: 'auth/token/revoke-self', token, json: {} });
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
  source: Source,
  token: Secret,
  outbound: Outbound,
): Promise<Result<KvVersion, MintFailure>> {
  const called = await callVault({ source, outbound, path: readPath(source), token });
  if (!called.ok) return called;
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

/** The path of the read, below `/v1`. */
export function readPath({ mount, secret_path: path, version }: Source): string {
  return `${encodePath(mount)}/data/${encodePath(path)}${version === undefined ? '' : `?version=${version}`}`;
}

export function urlOf({ vault_url: url }: Source, path: string): string {
  return `${url.replace(/\/$/, '')}/v1/${path}`;
}

export function hostOf({ vault_url: url }: Source): string {
  return new URL(url).host;
}

export function authMount({ auth_mount: mount = DEFAULT_AUTH_MOUNT }: Source): string {
  return encodePath(mount);
}

function encodePath(path: string): string {
  return path.split('/').map(encodeURIComponent).join('/');
}

function notKv(source: Source): string {
  return `the answer of ${hostOf(source)} is not that of a KV engine of version 2: compare vault_url and mount`;
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
