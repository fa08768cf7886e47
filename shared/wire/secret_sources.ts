import { z } from 'zod';
import { parseJson } from '../model/json.ts';
import { BORROWED_KIND, findServerCredential, SOURCE_KINDS, type SourceKind } from '../model/source_kind.ts';
import { providerUrl } from './connectors/connector_credentials.ts';
import { accessKeyIdText } from './host_binding_fields.ts';
import { line, owner, pageQuery, time } from './primitives.ts';
import { secretFacts, secretValue, sourcePath } from './secrets.ts';
import type { FieldProblem } from '../model/problem.ts';
import { keyPartsOf } from './sources/key_parts.ts';
import { awsRegion } from './sources/aws_region.ts';
import {
  awsSecretsManager,
  doppler,
  googleSecretManager,
  infisical,
  MANAGER_FIELDS,
  onepasswordConnect,
} from './sources/secret_managers.ts';
import { authenticationProblem, vaultKv, vaultLease } from './sources/vault.ts';

const word = z
  .string()
  .min(1)
  .max(500)
  .regex(/^[\x21-\x7e]+$/, 'has a space or a character that is not ASCII: give it as the provider shows it');
const scopes = z
  .array(word.regex(/^[^"\\]+$/, 'has a character that no scope may have'))
  .max(100)
  .default([]);
/** How an assertion is signed. */
const algorithm = z.enum(['RS256', 'PS256', 'ES256', 'EdDSA']).default('RS256');
const signing = { algorithm, key_id: word.optional() };

/** Where the tokens of a grant are revoked (RFC 7009), on the server of the token URL. Absent: they end by themselves. */
const revocation = { revocation_url: providerUrl.optional() };

const clientCredentials = z.strictObject({
  kind: z.literal('client_credentials'),
  token_url: providerUrl,
  ...revocation,
  client_id: word,
  /** How the client authenticates: RFC 6749 section 2.3.1, or RFC 7523 section 2.2. */
  client_authentication: z.enum(['basic', 'post', 'private_key_jwt']).default('basic'),
  scopes,
  /** The parameter of the same name, which some providers need. */
  audience: word.optional(),
  /** The resource of the token (RFC 8707). */
  resource: providerUrl.optional(),
  /** The audience of a client assertion; default: the token URL. */
  assertion_audience: word.optional(),
  ...signing,
  /** Of the certificate with the public key, which Microsoft Entra ID wants in the assertion: SHA-1 or SHA-256, in hexadecimal. */
  certificate_thumbprint: z
    .string()
    .regex(
      /^(?:[\dA-Fa-f]{2}:?){19}[\dA-Fa-f]{2}$|^(?:[\dA-Fa-f]{2}:?){31}[\dA-Fa-f]{2}$/,
      'is no thumbprint: give 40 or 64 hexadecimal digits, as "openssl x509 -fingerprint" and the portal show them',
    )
    .optional(),
});

/** How the client of a grant authenticates, which is who asks and not for whom. Absent: it does not. */
const grantClient = {
  /** Absent: no client is named. */
  client_id: word.optional(),
  client_authentication: z.enum(['none', 'basic', 'post', 'private_key_jwt']).optional(),
};

const jwtBearer = z.strictObject({
  kind: z.literal('jwt_bearer'),
  token_url: providerUrl,
  ...revocation,
  issuer: word,
  subject: word,
  /** Default: the token URL. */
  audience: word.optional(),
  scopes,
  ...signing,
  ...grantClient,
});

const tokenType = word.regex(/^urn:/, 'is not a token type, such as urn:ietf:params:oauth:token-type:jwt');
const tokenExchange = z.strictObject({
  kind: z.literal('token_exchange'),
  token_url: providerUrl,
  ...revocation,
  /** For a JWT that the source signs. Without the two, the key of the source is itself the token that is exchanged. */
  issuer: word.optional(),
  subject: word.optional(),
  /** The audience of that JWT; default: the token URL. */
  assertion_audience: word.optional(),
  ...signing,
  /** Default: that of a JWT if the source signs one, or of an access token. */
  subject_token_type: tokenType.optional(),
  requested_token_type: tokenType.optional(),
  /** Of the token of who acts for the subject (RFC 8693 section 2.1), which is then a part of the key. */
  actor_token_type: tokenType.optional(),
  ...grantClient,
  scopes,
  audience: word.optional(),
  resource: providerUrl.optional(),
});

/** It becomes a part of a path. */
const accountEmail = z
  .string()
  .regex(
    /^[\w.+-]{1,200}@[\w.-]{1,200}$/,
    'is not the email of a service account, such as ci@PROJECT.iam.gserviceaccount.com',
  );
const googleServiceAccount = z.strictObject({
  kind: z.literal('google_service_account'),
  client_email: word,
  /** The person of a domain for whom the account acts. */
  subject: word.optional(),
  key_id: word.optional(),
  /** For an access token. */
  scopes,
  /** For a JWT that the account signs itself, in place of an access token: the API, such as https://pubsub.googleapis.com/. */
  audience: word.optional(),
  token_url: providerUrl.default('https://oauth2.googleapis.com/token'),
  /** The account whose token it is in the end, by the IAM Credentials API. It has the scopes; the account itself asks with its own. */
  impersonate: accountEmail.optional(),
  /** The accounts in between: each may act for the next one, and the last one for the impersonated one. */
  delegates: z.array(accountEmail).min(1).max(5).optional(),
  /** Of the token of the impersonated account. Google allows more than an hour only where a policy of the organisation does. */
  duration_seconds: z.number().int().min(60).max(43_200).optional(),
  /** Default: https://iamcredentials.googleapis.com. */
  iam_credentials_url: providerUrl.optional(),
});

const githubName = z
  .string()
  .regex(/^[\w.-]{1,100}$/, 'is not the name of a repository: leave out its owner')
  .max(100);
const githubApp = z.strictObject({
  kind: z.literal('github_app'),
  /** The client id or the number of the app. */
  app_id: word.max(100),
  installation_id: z.string().regex(/^\d{1,20}$/, 'is not a number: the URL of the installation ends with it'),
  api_url: providerUrl.default('https://api.github.com'),
  /** Absent: all repositories of the installation. */
  repositories: z.array(githubName).min(1).max(500).optional(),
  /** Absent: all permissions of the installation. */
  permissions: z.record(z.string().regex(/^[a-z_]{1,60}$/), z.enum(['read', 'write', 'admin'])).optional(),
});

const awsArn = z.string().max(2048);
/** The longest session policy of AWS. */
const MAX_POLICY_CHARACTERS = 2048;
/** A role of AWS, and what its session may do at most. */
const awsRole = {
  role_arn: awsArn.regex(
    /^arn:aws[a-z-]*:iam::\d{12}:role\/[\w+=,.@/-]{1,576}$/,
    'is not the ARN of a role, such as arn:aws:iam::123456789012:role/deploy',
  ),
  /** What the logs of AWS show. */
  session_name: z
    .string()
    .regex(/^[\w+=,.@-]{2,64}$/, 'is not a session name: 2 to 64 letters, digits and +=,.@-_')
    .default('svc'),
  /** The region whose STS is asked, and for which the call is signed. */
  region: awsRegion,
  duration_seconds: z.number().int().min(900).max(43_200).default(3600),
  /** A session policy, in JSON: the session may do what both it and the role allow. */
  policy: z
    .string()
    .max(MAX_POLICY_CHARACTERS)
    .refine(isJsonObject, 'is not a JSON object, such as {"Version":"2012-10-17","Statement":[...]}')
    .optional(),
  /** Managed policies that narrow the session in the same way. */
  policy_arns: z
    .array(awsArn.regex(/^arn:aws[a-z-]*:iam::(?:\d{12}|aws):policy\/[\w+=,.@/-]+$/, 'is not the ARN of a policy'))
    .min(1)
    .max(10)
    .optional(),
  /** Default: the STS of the region. */
  sts_url: providerUrl.optional(),
};
const TAG_CHARACTERS = String.raw`[\p{L}\p{N} _.:/=+\-@]`;
const tagText = (longest: number) =>
  z
    .string()
    .regex(new RegExp(`^${TAG_CHARACTERS}{0,${longest}}$`, 'u'), 'has a character that no tag may have')
    // The API's description takes a pattern's flag for a part of it. JSON Schema reads every pattern with this one.
    .meta({ pattern: `^${TAG_CHARACTERS}{0,${longest}}$` });

const awsAssumeRole = z.strictObject({
  kind: z.literal('aws_assume_role'),
  /** Of the caller, whose secret access key is the key of the source. */
  access_key_id: accessKeyIdText,
  ...awsRole,
  external_id: z
    .string()
    .regex(/^[\w+=,.@:/-]{2,1224}$/, 'is not an external id')
    .optional(),
  tags: z.record(tagText(128).min(1), tagText(256)).optional(),
  /** The tags that stay when the session assumes another role. */
  transitive_tag_keys: z.array(tagText(128).min(1)).max(50).optional(),
});

const awsWebIdentity = z.strictObject({
  kind: z.literal('aws_web_identity'),
  ...awsRole,
  /** The OpenID provider in IAM, at whose URL AWS finds the public key. */
  issuer: z.string().regex(/^https:\/\/[\x21-\x7e]{1,250}$/, 'is not an https URL'),
  subject: word,
  audience: word.default('sts.amazonaws.com'),
  algorithm: z.enum(['RS256', 'ES256']).default('RS256'),
  key_id: word.optional(),
});

/** Which program gives the value, and for which hosts, is kept on each machine, with the consent given there. */
const borrowed = z.strictObject({ kind: z.literal(BORROWED_KIND) });

function isJsonObject(text: string): boolean {
  const value = parseJson(text);
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const SOURCES = [
  clientCredentials,
  jwtBearer,
  tokenExchange,
  googleServiceAccount,
  githubApp,
  awsAssumeRole,
  awsWebIdentity,
  vaultLease,
  vaultKv,
  awsSecretsManager,
  googleSecretManager,
  onepasswordConnect,
  doppler,
  infisical,
  borrowed,
] as const;

/** What a source of each kind is made of, apart from its key. None of it is secret. */
export const secretSource = z
  .discriminatedUnion('kind', SOURCES)
  .superRefine((source, context) => {
    const isVault = source.kind === 'vault_kv' || source.kind === 'vault_lease';
    const contradiction = isVault ? authenticationProblem(source) : null;
    if (contradiction !== null) {
      context.addIssue({ code: 'custom', path: [contradiction.field], message: contradiction.message });
    }
    if (source.kind === 'token_exchange' && (source.issuer === undefined) !== (source.subject === undefined)) {
      const path = [source.issuer === undefined ? 'issuer' : 'subject'];
      context.addIssue({
        code: 'custom',
        path,
        message: 'is needed for a JWT that the source signs: give both or none',
      });
    }
    if (source.kind === 'vault_kv' && source.kv_version === 1 && source.version !== undefined) {
      const message = 'is not for an engine of version 1, which keeps no earlier ones: leave it out';
      context.addIssue({ code: 'custom', path: ['version'], message });
    }
    const isGrant = source.kind === 'jwt_bearer' || source.kind === 'token_exchange';
    if (isGrant && source.client_id === undefined && (source.client_authentication ?? 'none') !== 'none') {
      const message = 'is needed for client_authentication: the client that authenticates';
      context.addIssue({ code: 'custom', path: ['client_id'], message });
    }
    if ('revocation_url' in source && source.revocation_url !== undefined) {
      const isSame = new URL(source.revocation_url).origin === new URL(source.token_url).origin;
      const message = 'must be on the server of token_url: a token is sent to no other';
      if (!isSame) context.addIssue({ code: 'custom', path: ['revocation_url'], message });
    }
    const google = source.kind === 'google_service_account' ? googleProblem(source) : null;
    if (google !== null) context.addIssue({ code: 'custom', path: [google.field], message: google.message });
  })
  .meta({ id: 'SecretSource' });

function googleProblem(source: z.output<typeof googleServiceAccount>): FieldProblem | null {
  const { audience, scopes: asked, impersonate } = source;
  if ((audience === undefined) === (asked.length === 0)) {
    return { field: 'scopes', message: 'is needed, or audience: give exactly one of the two' };
  }
  if (impersonate === undefined) {
    const field = (['delegates', 'duration_seconds', 'iam_credentials_url'] as const).find(
      (name) => source[name] !== undefined,
    );
    return field === undefined
      ? null
      : { field, message: 'is only for an account that impersonates another one: give impersonate' };
  }
  if (audience !== undefined) return { field: 'audience', message: 'is not for impersonate: give scopes' };
  return source.subject === undefined
    ? null
    : {
        field: 'subject',
        message: 'is not for impersonate: an account acts either for a person or for another account',
      };
}

export type SecretSource = z.output<typeof secretSource>;
export type MintedSource = Exclude<SecretSource, { kind: typeof BORROWED_KIND }>;
export type SourceOf<K extends SourceKind> = Extract<SecretSource, { kind: K }>;

const VAULT_KEYS = { token: 'token', approle: 'secret id', jwt: 'private key' } as const;

/** What the key of a source is called. */
export function sourceKeyName(
  source: MintedSource,
):
  | 'client secret'
  | 'private key'
  | 'secret access key'
  | 'token to exchange'
  | 'token'
  | 'secret id'
  | `JSON object with ${string}` {
  if (source.kind === 'jwt_bearer' || source.kind === 'token_exchange') {
    const parts = keyPartsOf(source);
    if (parts.length > 1) return `JSON object with ${parts.join(' and ')}`;
    return parts[0] === 'token' ? 'token to exchange' : 'private key';
  }
  if (source.kind === 'aws_assume_role' || source.kind === 'aws_secrets_manager') return 'secret access key';
  if (source.kind === 'onepassword_connect' || source.kind === 'doppler') return 'token';
  if (source.kind === 'infisical') return 'client secret';
  if (source.kind === 'vault_kv' || source.kind === 'vault_lease') return VAULT_KEYS[source.authentication];
  const isShared = source.kind === 'client_credentials' && source.client_authentication !== 'private_key_jwt';
  return isShared ? 'client secret' : 'private key';
}

/** How a field of a source is written as a text: `text`, a number, a list with commas, or pairs `name=value` with commas. */
export type FieldForm = 'text' | 'number' | 'list' | 'pairs';

/** The fields without which there is no source of a kind. */
export function requiredSourceFields(kind: SourceKind): ReadonlySet<string> {
  const schema = SOURCES.find(({ shape }) => shape.kind.value === kind);
  const fields = Object.entries(schema?.shape ?? {}).filter(([name]) => name !== 'kind');
  return new Set(fields.filter(([, field]) => !field.safeParse(undefined).success).map(([name]) => name));
}

/** The value of a field that was written as a text. A number that is none stays a text, which the schema refuses. */
export function readSourceField(form: FieldForm, text: string): unknown {
  if (form === 'text') return text;
  if (form === 'number') return /^\d+$/.test(text.trim()) ? Number(text) : text;
  if (form === 'list') return text.split(/[\s,]+/).filter((item) => item !== '');
  const items = text.split(/[\n,]+/).map((item) => item.trim());
  return Object.fromEntries(items.filter((item) => item !== '').map((item) => splitPair(item)));
}

function splitPair(item: string): [string, string] {
  const end = item.includes('=') ? item.indexOf('=') : item.indexOf(':');
  return end < 0 ? [item, ''] : [item.slice(0, end), item.slice(end + 1)];
}

/** The text of a field's value, which {@link readSourceField} reads. */
export function sourceFieldText(value: unknown): string {
  if (value === undefined) return '';
  if (Array.isArray(value)) return value.join(', ');
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return Object.entries(value)
    .map((pair) => pair.join('='))
    .join(', ');
}

const ROLE_FIELDS = {
  role_arn: 'text',
  session_name: 'text',
  region: 'text',
  duration_seconds: 'number',
  policy: 'text',
  policy_arns: 'list',
  sts_url: 'text',
} as const;

const VAULT_ACCESS_FIELDS = {
  authentication: 'text',
  role_id: 'text',
  role: 'text',
  issuer: 'text',
  subject: 'text',
  audience: 'text',
  algorithm: 'text',
  key_id: 'text',
  auth_mount: 'text',
  namespace: 'text',
} as const;

/** The fields of each kind, in the order in which people are shown them. */
export const SOURCE_FIELDS: {
  readonly [K in SourceKind]: { readonly [F in Exclude<keyof SourceOf<K>, 'kind'>]-?: FieldForm };
} = {
  client_credentials: {
    token_url: 'text',
    revocation_url: 'text',
    client_id: 'text',
    client_authentication: 'text',
    scopes: 'list',
    audience: 'text',
    resource: 'text',
    assertion_audience: 'text',
    algorithm: 'text',
    key_id: 'text',
    certificate_thumbprint: 'text',
  },
  jwt_bearer: {
    token_url: 'text',
    revocation_url: 'text',
    issuer: 'text',
    subject: 'text',
    audience: 'text',
    scopes: 'list',
    algorithm: 'text',
    key_id: 'text',
    client_id: 'text',
    client_authentication: 'text',
  },
  token_exchange: {
    token_url: 'text',
    revocation_url: 'text',
    issuer: 'text',
    subject: 'text',
    assertion_audience: 'text',
    algorithm: 'text',
    key_id: 'text',
    subject_token_type: 'text',
    requested_token_type: 'text',
    actor_token_type: 'text',
    client_id: 'text',
    client_authentication: 'text',
    scopes: 'list',
    audience: 'text',
    resource: 'text',
  },
  google_service_account: {
    client_email: 'text',
    scopes: 'list',
    audience: 'text',
    subject: 'text',
    key_id: 'text',
    token_url: 'text',
    impersonate: 'text',
    delegates: 'list',
    duration_seconds: 'number',
    iam_credentials_url: 'text',
  },
  github_app: {
    app_id: 'text',
    installation_id: 'text',
    repositories: 'list',
    permissions: 'pairs',
    api_url: 'text',
  },
  aws_assume_role: {
    access_key_id: 'text',
    ...ROLE_FIELDS,
    external_id: 'text',
    tags: 'pairs',
    transitive_tag_keys: 'list',
  },
  aws_web_identity: {
    ...ROLE_FIELDS,
    issuer: 'text',
    subject: 'text',
    audience: 'text',
    algorithm: 'text',
    key_id: 'text',
  },
  vault_lease: { vault_url: 'text', lease_path: 'text', field: 'text', ...VAULT_ACCESS_FIELDS },
  vault_kv: {
    vault_url: 'text',
    mount: 'text',
    secret_path: 'text',
    field: 'text',
    kv_version: 'number',
    version: 'number',
    ...VAULT_ACCESS_FIELDS,
  },
  ...MANAGER_FIELDS,
};

/** The fields of {@link sourceInput}. */
export const sourceInputFields = z.strictObject({
  path: sourcePath,
  owner: owner.default('personal'),
  description: line(500).optional(),
  source: secretSource,
  /** The client secret, the private key in PEM (PKCS#8; for RSA also PKCS#1), the secret access key of an AWS caller, a token to exchange, or what reads a secret manager. A borrowed secret has none. */
  key: secretValue.optional(),
});

/**
 * `POST /v1/secret-sources`: the secret at the path is minted from now on. The key is always given: a source whose URL
 * could be changed without it would send the stored key to whoever changes it.
 */
export const sourceInput = sourceInputFields
  .superRefine(({ path, source, key }, context) => {
    const isBorrowed = source.kind === BORROWED_KIND;
    if (isBorrowed && findServerCredential(path) !== null) {
      context.addIssue({
        code: 'custom',
        path: ['path'],
        message: 'is of an MCP server, which cannot use a borrowed secret',
      });
    }
    if (isBorrowed === (key === undefined)) return;
    const message = isBorrowed
      ? 'is not for a borrowed secret: its program gives the value on each machine'
      : 'is missing: give the client secret, the private key or the token of the source';
    context.addIssue({ code: 'custom', path: ['key'], message });
  })
  .meta({ id: 'SecretSourceInput' });

/** A source as the API shows it: never its key or a value. */
export const sourceRecord = z
  .object({
    ...secretFacts,
    source: secretSource,
    /** The value that is held now; null if none is. */
    minted: z.object({ for: z.string(), at: time, until: time }).nullable(),
    /** Of the last value for a request, whether it is still held or not; null since the source was stored or changed. */
    last_minted_at: time.nullable(),
    /** The last failure since the last value. */
    failure: z.object({ message: z.string(), at: time }).nullable(),
    updated_at: time,
  })
  .meta({ id: 'SecretSourceRecord' });
export type SourceRecord = z.infer<typeof sourceRecord>;

/** An earlier control plane sends no cursor. */
export const sourcesPage = z
  .object({ items: z.array(sourceRecord), next_cursor: z.string().nullable().default(null) })
  .meta({ id: 'SecretSourcesPage' });
export type SourcesPage = z.infer<typeof sourcesPage>;
const MOST_SOURCES = 1_000;
/** By default as many as before there was a cursor. */
export const sourcesQuery = z.strictObject({
  limit: z.coerce.number().int().min(1).max(MOST_SOURCES).default(MOST_SOURCES),
  cursor: pageQuery.cursor,
  owner: owner.optional(),
});

/** `POST /v1/secret-sources/dry-run`: a source that exists, or one that does not yet. Its key, if it is given, is checked. */
export const sourceDryRunInput = z
  .strictObject({
    path: sourcePath.optional(),
    owner: owner.default('personal'),
    source: secretSource.optional(),
    key: secretValue.optional(),
  })
  .superRefine(({ path, source, key }, context) => {
    if ((path === undefined) === (source === undefined)) {
      const message = 'is needed, or path: give exactly one of the two';
      context.addIssue({ code: 'custom', path: ['source'], message });
    }
    if (key !== undefined && source === undefined) {
      context.addIssue({ code: 'custom', path: ['key'], message: 'is only checked with a source' });
    }
  })
  .meta({ id: 'SecretSourceDryRun' });

/** What a mint would ask for. Nothing is asked, stored or shown of a value. */
export const sourcePlan = z
  .object({
    kind: z.enum([...SOURCE_KINDS, BORROWED_KIND]),
    /** A key set is a secret access key of AWS with its access key id and session token. A kept value is read where it is kept. */
    value: z.enum(['token', 'key_set', 'kept_value']),
    minted_for: z.string(),
    /** Who the value speaks for at the provider. */
    identity: z.string(),
    /** What bounds it; empty: whatever the provider gives that identity. */
    scope: z.array(z.string()),
    audience: z.string().nullable(),
    /** Null: the source signs the value itself, and no provider is called. */
    provider_url: z.string().nullable(),
    /** Null: the provider decides. */
    life_seconds: z.number().int().nullable(),
    /** If it were minted now. A provider may end it earlier. */
    until_at_latest: time,
    /** It has the form that is needed. False: it was not given, or only the provider can tell. */
    key_checked: z.boolean(),
  })
  .meta({ id: 'SecretSourcePlan' });
export type SourcePlan = z.infer<typeof sourcePlan>;

/** `POST /v1/secret-sources/test`: mints a value and discards it. It is revoked if the provider can. */
export const sourceTestInput = z
  .strictObject({ path: sourcePath, owner: owner.default('personal') })
  .meta({ id: 'SecretSourceTest' });
export const sourceTestReply = z
  .object({
    minted_for: z.string(),
    until: time,
    /** What became of the value. `ends`: its provider cannot revoke it. `kept`: it is that of a secret manager. Absent: an earlier control plane. */
    left: z.enum(['revoked', 'ends', 'not_revoked', 'kept']).optional(),
  })
  .meta({ id: 'SecretSourceTested' });
export type SourceTested = z.infer<typeof sourceTestReply>;
