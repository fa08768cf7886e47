import { z } from 'zod';
import type { Problem } from '../../model/problem.ts';
import { err, ok, type Result } from '../../model/result.ts';
import type { SourceKind } from '../../model/source_kind.ts';
import { formatVaultReference, parseVaultReference, VAULT_SCHEME } from '../../model/vault_path.ts';
import { type FieldForm, readSourceField, type SecretSource, secretSource } from '../secret_sources.ts';

const text = z.string().min(1).max(500);

/** What one session may do less with a minted secret than its source allows. Each field is one of the source, with a smaller value. */
export const narrowing = z
  .strictObject({
    /** Of OAuth: some of those of the source. */
    scopes: z.array(text).min(1).max(100).optional(),
    /** Of GitHub: some of those of the source. */
    repositories: z.array(text).min(1).max(500).optional(),
    /** Of GitHub: some of those of the source, at its level or a lower one. */
    permissions: z
      .record(z.string().min(1).max(60), z.enum(['read', 'write', 'admin']))
      .refine((pairs) => Object.keys(pairs).length > 0, 'is empty: name a permission, such as contents=read')
      .optional(),
    /** Of AWS: a session policy, for a source that has none. */
    policy: z.string().min(2).max(2048).optional(),
    /** Of AWS, at least 900; and of a Google account that impersonates another one. */
    duration_seconds: z.number().int().min(60).max(43_200).optional(),
  })
  .refine((fields) => Object.values(fields).some((value) => value !== undefined), 'names no field')
  .meta({ id: 'Narrowing' });
export type Narrowing = z.output<typeof narrowing>;

/** The fields of a narrowing, and how each is written as a text. */
export const NARROWING_FIELDS = {
  scopes: 'list',
  repositories: 'list',
  permissions: 'pairs',
  policy: 'text',
  duration_seconds: 'number',
} as const satisfies Readonly<Record<keyof Narrowing, FieldForm>>;

const OAUTH = ['scopes'] as const;
const AWS = ['policy', 'duration_seconds'] as const;
const FIELDS_OF: { readonly [K in SourceKind]: readonly (keyof Narrowing)[] } = {
  client_credentials: OAUTH,
  jwt_bearer: OAUTH,
  token_exchange: OAUTH,
  google_service_account: ['scopes', 'duration_seconds'],
  github_app: ['repositories', 'permissions'],
  aws_assume_role: AWS,
  aws_web_identity: AWS,
  vault_lease: [],
  vault_kv: [],
  aws_secrets_manager: [],
  google_secret_manager: [],
  onepassword_connect: [],
  doppler: [],
  infisical: [],
};

type Narrowed<T> = Result<T, string>;

/**
 * The source with less: every field of the narrowing is in the source, or in what the source leaves to the provider and the
 * provider itself bounds. Refuses what would be more, or what nobody can tell to be less. The message never has a secret.
 */
export function narrowSource(source: SecretSource, wanted: Narrowing): Narrowed<SecretSource> {
  if (source.kind === 'borrowed') return err('a program of this machine gives the value: it cannot be narrowed');
  const known = FIELDS_OF[source.kind];
  if (known.length === 0) return err(`a secret of the kind ${source.kind} is one value, which cannot be narrowed`);
  const foreign = Object.entries(wanted).find(
    ([name, value]) => value !== undefined && !known.some((field) => field === name),
  );
  if (foreign !== undefined) {
    return err(`${foreign[0]}: a secret of the kind ${source.kind} is narrowed by ${known.join(' and ')}`);
  }
  const fields = narrowFields(source, wanted);
  if (!fields.ok) return fields;
  const narrowed = secretSource.safeParse({ ...source, ...fields.value });
  if (narrowed.success) return ok(narrowed.data);
  const issue = narrowed.error.issues[0];
  return err(`${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'is not valid'}`);
}

function narrowFields(source: SecretSource, wanted: Narrowing): Narrowed<Narrowing> {
  if (source.kind === 'github_app') return narrowGithub(source, wanted);
  if (source.kind === 'aws_assume_role' || source.kind === 'aws_web_identity') return narrowAws(source, wanted);
  if (source.kind === 'google_service_account') return narrowGoogle(source, wanted);
  return 'scopes' in source ? narrowScopes(source.scopes, wanted) : err('cannot be narrowed');
}

/** Without scopes of its own, a source gets what its provider chooses, and one that is named may be more than that. */
function narrowScopes(own: readonly string[], { scopes = [] }: Narrowing): Narrowed<Narrowing> {
  if (own.length === 0) return err('scopes: the source names none, so nothing says which would be less');
  const more = scopes.find((scope) => !own.includes(scope));
  return more === undefined ? ok({ scopes }) : err(`scopes: ${JSON.stringify(more)} is not one of ${own.join(' ')}`);
}

const GOOGLE_SECONDS = 3600;

function narrowGoogle(
  source: Extract<SecretSource, { kind: 'google_service_account' }>,
  { scopes, duration_seconds: seconds }: Narrowing,
): Narrowed<Narrowing> {
  const fewer = scopes === undefined ? ok({}) : narrowScopes(source.scopes, { scopes });
  if (!fewer.ok || seconds === undefined) return fewer;
  const own = source.duration_seconds ?? GOOGLE_SECONDS;
  return seconds > own
    ? err(`duration_seconds: is more than the ${own} of the source`)
    : ok({ ...fewer.value, duration_seconds: seconds });
}

const LEVELS = ['read', 'write', 'admin'];

/** GitHub itself refuses repositories and permissions that the installation does not have. */
function narrowGithub(
  source: Extract<SecretSource, { kind: 'github_app' }>,
  { repositories, permissions }: Narrowing,
): Narrowed<Narrowing> {
  const own = source.repositories?.map((name) => name.toLowerCase());
  const far = own === undefined ? undefined : repositories?.find((name) => !own.includes(name.toLowerCase()));
  if (far !== undefined) return err(`repositories: ${JSON.stringify(far)} is not one of those of the source`);
  const { permissions: allowed } = source;
  const higher = Object.entries(permissions ?? {}).find(
    ([name, level]) =>
      allowed !== undefined &&
      (!Object.hasOwn(allowed, name) || LEVELS.indexOf(level) > LEVELS.indexOf(allowed[name] ?? '')),
  );
  if (higher !== undefined) return err(`permissions: ${higher.join('=')} is more than the source has`);
  return ok({ ...(repositories !== undefined && { repositories }), ...(permissions !== undefined && { permissions }) });
}

/** AWS adds up the session policies of one call, so a second one beside those of the source would be more. */
function narrowAws(
  source: Extract<SecretSource, { kind: 'aws_assume_role' | 'aws_web_identity' }>,
  { policy, duration_seconds: seconds }: Narrowing,
): Narrowed<Narrowing> {
  if (policy !== undefined && (source.policy ?? source.policy_arns) !== undefined) {
    return err('policy: the source has a session policy, and AWS adds up two of them: have another secret minted');
  }
  if (seconds !== undefined && seconds > source.duration_seconds) {
    return err(`duration_seconds: is more than the ${source.duration_seconds} of the source`);
  }
  return ok({ ...(policy !== undefined && { policy }), ...(seconds !== undefined && { duration_seconds: seconds }) });
}

/** A vault path, and what a session may do less with its secret. */
export interface SecretScope {
  readonly path: string;
  readonly narrowing: Narrowing;
}

/** Whether a reference is one of a secret that is narrowed. */
export function isScoped(scopes: readonly SecretScope[], reference: string): boolean {
  return scopes.some(({ path }) => formatVaultReference(path) === reference);
}

const RULE = 'write REFERENCE:FIELD=VALUE, such as vault://ci/github:repositories=website';

/** Reads the texts `[vault://]PATH:FIELD=VALUE`; several of one path are put together. */
export function parseScopes(texts: readonly string[]): Result<readonly SecretScope[], Problem> {
  const fields = new Map<string, Record<string, unknown>>();
  for (const each of texts) {
    const [, reference = '', name = '', value = ''] = /^((?:vault:\/\/)?[^:]*):([^=:]*)=(.*)$/s.exec(each) ?? [];
    const isWhole = reference.startsWith(VAULT_SCHEME);
    const path = parseVaultReference(isWhole ? reference : formatVaultReference(reference));
    if (!path.ok) return invalid(`has a value that is no scope: ${RULE}`);
    const field = Object.entries(NARROWING_FIELDS).find(([known]) => known === name);
    if (field === undefined) {
      return invalid(`has the field ${JSON.stringify(name)}: use ${Object.keys(NARROWING_FIELDS).join(', ')}`);
    }
    const known = fields.get(path.value) ?? {};
    if (Object.hasOwn(known, name)) return invalid(`names ${name} twice: give all of its values at once`);
    fields.set(path.value, { ...known, [name]: readSourceField(field[1], value) });
  }
  const scopes: SecretScope[] = [];
  for (const [path, given] of fields) {
    const checked = narrowing.safeParse(given);
    const issue = checked.error?.issues[0];
    if (!checked.success) return invalid(`${issue?.path.join('.') ?? ''} ${issue?.message ?? 'is not valid'}`);
    scopes.push({ path, narrowing: checked.data });
  }
  return ok(scopes);
}

function invalid(message: string): Result<never, Problem> {
  return err({ reason: 'invalid_scope', message });
}
