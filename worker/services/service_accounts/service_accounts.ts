import { importJWK } from 'jose';
import { z } from 'zod';
import { claimRulesProblem } from '../../../shared/join/claims_policy.ts';
import type { FieldProblem } from '../../../shared/model/problem.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { Page } from '../../../shared/wire/primitives.ts';
import type {
  ServiceAccountChange,
  ServiceAccountInput,
  ServiceAccountRecord,
} from '../../../shared/wire/service_accounts.ts';
import { type Caller, mayActAs } from '../../kernel/caller.ts';
import { type AuditDraft, commit } from '../../kernel/commit.ts';
import { type PageQuery, readPageById } from '../../kernel/cursors.ts';
import { targetProblem } from '../../kernel/outbound.ts';
import { controlChain } from '../../kernel/policy_change.ts';
import { changedSince, revisionOf } from '../../kernel/revision.ts';
import { freshId, nowText, type ServiceContext } from '../../kernel/service_context.ts';
import { toShownLine } from '../../../shared/model/shown_text.ts';
import { insertUser } from '../../store/accounts.ts';
import { signOutEverywhere } from '../../store/members.ts';
import {
  countJoined,
  findServiceAccount,
  insertServiceAccount,
  listServiceAccounts,
  type ServiceAccountRow,
  type ServiceAccountUpdate,
  updateServiceAccount,
} from '../../store/service_accounts.ts';
import { planDeparture } from '../people/departure.ts';

/** Makes a service account. Refuses with `admin_required`, `invalid_input`, `limit_reached`. */
export async function createServiceAccount(
  context: ServiceContext,
  caller: Caller,
  input: ServiceAccountInput,
): Promise<Result<ServiceAccountRecord, ApiError>> {
  if (!mayActAs(caller, 'admin')) return err(adminsOnly());
  const policy = await readPolicy(context, input);
  if (!policy.ok) return policy;
  const { enterpriseId } = caller;
  const id = freshId(context, 'usr');
  const createdAt = nowText(context);
  const person = { id: freshId(context, 'per'), createdAt };
  const user = { id, enterpriseId, email: null, displayName: input.name, role: 'member' as const, createdAt };
  const made = await commit(context, controlChain(caller), async () => {
    return ok({
      statements: [
        ...insertUser(context.database, { person, user }),
        insertServiceAccount(context.database, { userId: id, enterpriseId, ...policy.value }),
      ],
      events: [accountEvent('created', caller, id)],
      adds: [
        { kind: 'service_accounts', holder: enterpriseId },
        { kind: 'members', holder: enterpriseId },
      ],
      value: null,
    });
  });
  return made.ok ? readServiceAccount(context, caller, id) : made;
}

/**
 * Replaces the policy of a service account, and ends its sidecars. With `revision`, only if it was not changed since it was read. Refuses
 * with `admin_required`, `not_found`, `invalid_input`, `conflict`.
 */
export async function putServiceAccount(
  context: ServiceContext,
  caller: Caller,
  id: string,
  input: ServiceAccountChange,
  revision: string | null = null,
): Promise<Result<ServiceAccountRecord, ApiError>> {
  const own = await findOwn(context, caller, id);
  if (!own.ok) return own;
  const policy = await readPolicy(context, input);
  if (!policy.ok) return policy;
  const now = nowText(context);
  const changed = await commit(context, controlChain(caller), async () => {
    const current = await findOwn(context, caller, id);
    if (!current.ok) return current;
    const stale = changedSince(`the service account ${id}`, revision, revisionOf(changeable(current.value)));
    if (stale !== null) return err(stale);
    const suspendedAt = input.suspended ? (current.value.user.suspendedAt ?? now) : null;
    return ok({
      statements: [
        ...updateServiceAccount(context.database, id, {
          policy: policy.value,
          user: { displayName: input.name, suspendedAt },
        }),
        ...signOutEverywhere(context.database, id, now),
      ],
      events: [changeEvent(caller, id, current.value, { ...policy.value, name: input.name, suspendedAt })],
      value: null,
    });
  });
  return changed.ok ? readServiceAccount(context, caller, id) : changed;
}

/** Removes a service account with its secrets and bindings, and ends its sidecars. Refuses with `admin_required`, `not_found`. */
export function removeServiceAccount(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<null, ApiError>> {
  return commit(context, controlChain(caller), async () => {
    const own = await findOwn(context, caller, id);
    if (!own.ok) return own;
    return ok(await planDeparture(context, own.value.user, accountEvent('deleted', caller, id)));
  });
}

/** Refuses with `admin_required`, `not_found`. */
export async function readServiceAccount(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<ServiceAccountRecord, ApiError>> {
  const own = await findOwn(context, caller, id);
  if (!own.ok) return own;
  const joined = await countJoined(context.database, caller.enterpriseId, nowText(context));
  return ok(toRecord(own.value, joined));
}

/** The service accounts of the caller's enterprise, oldest first. Refuses with `admin_required`, `invalid_cursor`. */
export async function listServiceAccountPage(
  context: ServiceContext,
  caller: Caller,
  query: PageQuery,
): Promise<Result<Page<ServiceAccountRecord>, ApiError>> {
  if (!mayActAs(caller, 'admin')) return err(adminsOnly());
  const { enterpriseId } = caller;
  const joined = await countJoined(context.database, enterpriseId, nowText(context));
  return readPageById(query, 'usr', {
    read: (from) =>
      listServiceAccounts(context.database, { enterpriseId, ...from }).then((rows) =>
        rows.map((row) => ({ ...row, id: row.user.id })),
      ),
    toItem: (row) => toRecord(row, joined),
  });
}

/** Acts as who manages the rows of a service account. Refuses with `admin_required`, `not_found`, and as the action does. */
export async function manageServiceAccount<T>(
  context: ServiceContext,
  caller: Caller,
  id: string,
  act: (manager: Caller) => Promise<Result<T, ApiError>>,
): Promise<Result<T, ApiError>> {
  const own = await findOwn(context, caller, id);
  return own.ok ? act({ ...caller, managed: id }) : own;
}

async function findOwn(
  { database }: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<ServiceAccountRow, ApiError>> {
  if (!mayActAs(caller, 'admin')) return err(adminsOnly());
  const row = await findServiceAccount(database, id);
  if (row !== null && row.account.enterpriseId === caller.enterpriseId) return ok(row);
  return err(apiError('not_found', `there is no service account ${id}: list them with GET /v1/service-accounts`));
}

async function readPolicy(
  context: ServiceContext,
  input: ServiceAccountInput,
): Promise<Result<ServiceAccountUpdate, ApiError>> {
  const audience = input.audience ?? context.publicUrl;
  const problem = audience === null ? NO_AUDIENCE : ((await keysProblem(input)) ?? policyProblem(context, input));
  if (problem !== null || audience === null) return err(invalid(problem ?? NO_AUDIENCE));
  const { issuer, claims, reach, minutes, keys } = input;
  const stored = keys === undefined ? null : JSON.stringify(keys);
  return ok({ issuer, audience, claims: JSON.stringify(claims), reach, minutes, keys: stored });
}

const NO_AUDIENCE: FieldProblem = {
  field: 'audience',
  message: 'is missing, and this control plane has no public URL: name what the tokens are for',
};

function policyProblem({ local }: ServiceContext, { issuer, claims, keys }: ServiceAccountInput): FieldProblem | null {
  const url = new URL(issuer);
  if (url.search !== '' || url.hash !== '' || url.username !== '' || url.password !== '') {
    return { field: 'issuer', message: 'is not a plain URL: write it as the tokens have it in iss' };
  }
  // With its keys given, it is only a name.
  const target = keys === undefined ? targetProblem(url, local !== null) : null;
  if (target !== null) return { field: 'issuer', message: `${target.message}. Or give its public keys as "keys"` };
  return claimRulesProblem(issuer, claims);
}

/** Members of keys that are not public (RFC 7518 section 6). */
const PRIVATE = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];

async function keysProblem({ keys = [] }: ServiceAccountInput): Promise<FieldProblem | null> {
  for (const [index, key] of keys.entries()) {
    const field = `keys.${index}`;
    if (PRIVATE.some((member) => member in key))
      return { field, message: 'is not a public key: give the public half only' };
    const jwk = publicKey.safeParse(key);
    const isUsable = jwk.success && (await isImportable(jwk.data));
    if (!isUsable)
      return {
        field,
        message: 'is not a public key of the type RSA, EC or OKP (RFC 7517): give it as the issuer has it',
      };
  }
  return null;
}

const publicKey = z.looseObject({ kty: z.enum(['RSA', 'EC', 'OKP']), crv: z.string().optional() });

async function isImportable({ crv = '', ...key }: z.infer<typeof publicKey>): Promise<boolean> {
  const algorithms: Readonly<Record<string, string>> = {
    'P-256': 'ES256',
    'P-384': 'ES384',
    'P-521': 'ES512',
    Ed25519: 'EdDSA',
  };
  const algorithm = key.kty === 'RSA' ? 'RS256' : algorithms[crv];
  try {
    return algorithm !== undefined && !((await importJWK({ ...key, crv }, algorithm)) instanceof Uint8Array);
  } catch {
    // Whatever the platform says, it is no key.
    return false;
  }
}

const storedClaims = z.record(z.string(), z.string());
const storedKeys = z.array(z.record(z.string(), z.unknown()));

function toRecord(row: ServiceAccountRow, joined: ReadonlyMap<string, number>): ServiceAccountRecord {
  const { account, user } = row;
  const policy = changeable(row);
  return {
    id: user.id,
    ...policy,
    live_sidecars: joined.get(user.id) ?? 0,
    created_at: user.createdAt,
    last_joined_at: account.lastJoinedAt,
    revision: revisionOf(policy),
  };
}

/** What admins change about a service account. */
function changeable({ account, user }: ServiceAccountRow) {
  return {
    name: user.displayName,
    issuer: account.issuer,
    audience: account.audience,
    claims: storedClaims.parse(JSON.parse(account.claims)),
    reach: account.reach,
    minutes: account.minutes,
    keys: account.keys === null ? null : storedKeys.parse(JSON.parse(account.keys)),
    suspended_at: user.suspendedAt,
  };
}

type Happened = 'created' | 'updated' | 'deleted';

function accountEvent(happened: Happened, caller: Caller, id: string): AuditDraft {
  return {
    type: `control.service_account.${happened}`,
    actor: caller.userId,
    data: { 'svc.control.resource': id },
  };
}

/** Says what changed, because who may join as the account, and what it reaches, is decided by it. */
function changeEvent(
  caller: Caller,
  id: string,
  { account, user }: ServiceAccountRow,
  after: ServiceAccountUpdate & { readonly name: string; readonly suspendedAt: string | null },
): AuditDraft {
  const fields = [
    ['name', user.displayName, after.name],
    ['issuer', account.issuer, after.issuer],
    ['audience', account.audience, after.audience],
    ['claims', account.claims, after.claims],
    ['reach', account.reach, after.reach],
    ['minutes', account.minutes, after.minutes],
    ['suspended', user.suspendedAt !== null, after.suspendedAt !== null],
  ] as const;
  const changed = fields
    .filter(([, before, now]) => before !== now)
    .map(([field, before, now]) => `${field}: ${String(before)} -> ${String(now)}`);
  // Public keys are long: that they changed is enough.
  const all = account.keys === after.keys ? changed : [...changed, 'keys: replaced'];
  const words = all.length === 0 ? 'nothing' : all.join('; ');
  const { type, actor, data } = accountEvent('updated', caller, id);
  return { type, actor, data: { ...data, 'svc.control.changed': toShownLine(words, MAX_EVENT_CHARACTERS) } };
}

const MAX_EVENT_CHARACTERS = 1_000;

function invalid({ field, message }: FieldProblem): ApiError {
  return apiError('invalid_input', `${field} ${message}`, { fields: [{ field, message }] });
}

function adminsOnly(): ApiError {
  return apiError('admin_required', 'service accounts need the role admin or owner: ask an admin');
}
