import type { SourceKind } from '../../../shared/model/source_kind.ts';
import type { SecretSource } from '../../../shared/wire/secret_sources.ts';
import type { Choice } from '../components/form_field.ts';

/** The kinds of sources, by what they are for. */
export const SOURCE_TITLES: {
  readonly [K in SecretSource['kind']]: { readonly title: string; readonly lead: string };
} = {
  borrowed: {
    title: 'A program on each machine',
    lead: 'A program on the machine of a developer gives the value, by consent there. It is not in the control plane.',
  },
  client_credentials: {
    title: 'OAuth client',
    lead: 'An access token for a client itself, such as an application of Microsoft Entra ID (client_credentials).',
  },
  jwt_bearer: { title: 'JWT bearer', lead: 'An access token for a JWT that the key signs (RFC 7523).' },
  token_exchange: {
    title: 'Token exchange',
    lead: 'A token for a JWT that the key signs, or for a token that is the key (RFC 8693).',
  },
  google_service_account: {
    title: 'Google service account',
    lead: 'An access token for scopes, or a JWT for one API. The fields are in the account’s key file.',
  },
  github_app: {
    title: 'GitHub App',
    lead: 'A token of one installation, narrowed to repositories and permissions.',
  },
  aws_assume_role: {
    title: 'AWS role',
    lead: 'A key set of a role that a caller with an access key assumes. Only an AWS signature can use it.',
  },
  aws_web_identity: {
    title: 'AWS role by identity',
    lead: 'A key set of a role for a JWT that the key signs, so that no access key exists. Only an AWS signature can use it.',
  },
  vault_lease: {
    title: 'Vault or OpenBao, leased',
    lead: 'A field of a secret that an engine makes when it is needed, until its lease ends.',
  },
  vault_kv: {
    title: 'Vault or OpenBao',
    lead: 'A field of a secret in a KV engine of version 2, read there every few minutes.',
  },
  aws_secrets_manager: {
    title: 'AWS Secrets Manager',
    lead: 'A secret of AWS Secrets Manager, or a field of it, read there every few minutes.',
  },
  google_secret_manager: {
    title: 'Google Secret Manager',
    lead: 'A version of a secret, or a field of it, that a service account reads there every few minutes.',
  },
  onepassword_connect: {
    title: '1Password Connect',
    lead: 'A field of an item, read from a Connect server every few minutes.',
  },
  doppler: { title: 'Doppler', lead: 'A secret of a config, read there every few minutes.' },
  infisical: { title: 'Infisical', lead: 'A secret that a machine identity reads there every few minutes.' },
};

/** How a field is asked for. */
interface FieldWords {
  readonly label: string;
  readonly hint?: string;
  readonly placeholder?: string;
  readonly choices?: readonly string[];
  /** Rarely changed: it is shown on demand, unless it is needed. */
  readonly isRare?: true;
}

const LIST = 'Separated by commas';

export const SOURCE_FIELD_WORDS: Readonly<Record<string, FieldWords>> = {
  token_url: { label: 'Token URL', placeholder: 'https://id.example.com/oauth2/token' },
  revocation_url: {
    label: 'Revocation URL',
    hint: 'Where the provider ends tokens early (RFC 7009), on the server of the token URL',
    placeholder: 'https://id.example.com/oauth2/revoke',
  },
  client_id: { label: 'Client id' },
  client_authentication: {
    label: 'How the client authenticates',
    hint: 'basic: its secret in a header; post: its secret in the body; private_key_jwt: an assertion that its key signs',
    choices: ['basic', 'post', 'private_key_jwt'],
  },
  scopes: { label: 'Scopes', hint: LIST },
  audience: { label: 'Audience' },
  resource: { label: 'Resource', hint: 'The URL of the API (RFC 8707)', isRare: true },
  assertion_audience: { label: 'Audience of the assertion', hint: 'Empty: the token URL', isRare: true },
  algorithm: {
    label: 'How the assertion is signed',
    choices: ['RS256', 'PS256', 'ES256', 'EdDSA'],
    isRare: true,
  },
  key_id: { label: 'Key id', hint: 'The kid of the public key at the provider', isRare: true },
  certificate_thumbprint: {
    label: 'Thumbprint of the certificate',
    hint: 'In hexadecimal, as the portal of Microsoft Entra ID shows it',
    isRare: true,
  },
  issuer: { label: 'Issuer', hint: 'Who signs the JWT' },
  subject: { label: 'Subject', hint: 'Whom the token is for' },
  subject_token_type: {
    label: 'Type of the exchanged token',
    placeholder: 'urn:ietf:params:oauth:token-type:jwt',
    isRare: true,
  },
  requested_token_type: { label: 'Type of the token to get', isRare: true },
  client_email: { label: 'Email of the service account', placeholder: 'ci@project.iam.gserviceaccount.com' },
  app_id: { label: 'App id', hint: 'The client id or the number of the app' },
  installation_id: { label: 'Installation id', hint: 'The number at the end of the installation’s URL' },
  repositories: { label: 'Repositories', hint: `${LIST}, without their owner; empty: all of the installation` },
  permissions: { label: 'Permissions', hint: 'Such as contents=read, issues=write; empty: all of the installation' },
  api_url: { label: 'API', hint: 'For GitHub Enterprise: https://HOST/api/v3', isRare: true },
  access_key_id: { label: 'Access key id of the caller', placeholder: 'AKIAIOSFODNN7EXAMPLE' },
  role_arn: { label: 'Role', placeholder: 'arn:aws:iam::123456789012:role/deploy' },
  region: { label: 'Region', placeholder: 'eu-central-1' },
  session_name: { label: 'Name of the session', hint: 'What the logs of AWS show' },
  duration_seconds: {
    label: 'Life in seconds',
    hint: 'Of AWS 900 to 43200; of a Google account that is impersonated 60 to 43200',
  },
  impersonate: {
    label: 'Account to impersonate',
    hint: 'Empty: the token is of the account itself',
    placeholder: 'deploy@project.iam.gserviceaccount.com',
  },
  delegates: { label: 'Accounts in between', hint: LIST, isRare: true },
  iam_credentials_url: {
    label: 'IAM Credentials API',
    hint: 'Empty: https://iamcredentials.googleapis.com',
    isRare: true,
  },
  kv_version: { label: 'Version of the KV engine', hint: 'Empty: 2', isRare: true },
  actor_token_type: {
    label: 'Type of the token of who acts',
    hint: 'Then the key has an actor_token too',
    isRare: true,
  },
  policy: { label: 'Session policy', hint: 'In JSON: the session may do what both it and the role allow' },
  policy_arns: { label: 'Managed policies', hint: `${LIST}: they narrow the session in the same way`, isRare: true },
  sts_url: { label: 'STS', hint: 'Empty: that of the region', isRare: true },
  external_id: { label: 'External id', hint: 'If the trust policy of the role wants one', isRare: true },
  tags: { label: 'Session tags', hint: 'Such as team=web, stage=test', isRare: true },
  vault_url: { label: 'Address of Vault', placeholder: 'https://vault.example.com' },
  mount: { label: 'Engine', hint: 'Where the KV engine is mounted; empty: secret' },
  lease_path: { label: 'Path of the lease', hint: 'With the engine', placeholder: 'nomad/creds/ci' },
  secret_path: { label: 'Path of the secret there', hint: 'Without the engine and data/', placeholder: 'ci/database' },
  field: { label: 'Field', hint: 'Of the secret there; of a whole JSON value, if it is needed' },
  secret_id: { label: 'Secret there', hint: 'Its name or ARN', placeholder: 'ci/database' },
  version_stage: { label: 'Stage', hint: 'Empty: AWSCURRENT', isRare: true },
  secrets_manager_url: { label: 'Endpoint', hint: 'Empty: that of the region', isRare: true },
  secret_resource: { label: 'Secret there', placeholder: 'projects/our-project/secrets/database' },
  secret_manager_url: {
    label: 'Endpoint',
    hint: 'For a regional secret: https://secretmanager.LOCATION.rep.googleapis.com',
    isRare: true,
  },
  connect_url: { label: 'Address of the Connect server', placeholder: 'https://connect.example.com' },
  vault_id: { label: 'Id of the vault', hint: '26 letters and digits' },
  item_id: { label: 'Id of the item', hint: '26 letters and digits' },
  section: { label: 'Section', hint: 'If fields of several sections have the same label', isRare: true },
  project: { label: 'Project' },
  config: { label: 'Config', placeholder: 'prd' },
  secret_name: { label: 'Name of the secret there', placeholder: 'DATABASE_PASSWORD' },
  doppler_url: { label: 'API of Doppler', isRare: true },
  infisical_url: { label: 'Address of Infisical', hint: 'Empty: https://us.infisical.com' },
  project_id: { label: 'Id of the project' },
  environment: { label: 'Environment', placeholder: 'prod' },
  folder: { label: 'Folder', hint: 'Empty: /' },
  version: { label: 'Version there', hint: 'Empty: the newest', isRare: true },
  authentication: {
    label: 'How it authenticates',
    hint: 'token: the key is a token; approle: it is the secret id of an AppRole; jwt: it is a private key that signs a JWT for issuer and subject',
    choices: ['token', 'approle', 'jwt'],
  },
  role_id: { label: 'Role id of the AppRole' },
  role: { label: 'Role of the login by JWT', hint: 'Empty: the default role', isRare: true },
  auth_mount: { label: 'Mount of the login', hint: 'Empty: approle or jwt', isRare: true },
  namespace: { label: 'Namespace of Vault', isRare: true },
  transitive_tag_keys: { label: 'Transitive tags', hint: LIST, isRare: true },
};

/** The first choice is what a source has if it says nothing. AWS takes only two of the algorithms. */
export function choicesOf(kind: SourceKind, name: string): readonly Choice[] | null {
  const choices = SOURCE_FIELD_WORDS[name]?.choices;
  if (choices === undefined) return null;
  const isGrant = kind === 'jwt_bearer' || kind === 'token_exchange';
  const all = isGrant && name === 'client_authentication' ? ['none', ...choices] : choices;
  const offered = kind === 'aws_web_identity' ? all.filter((each) => each === 'RS256' || each === 'ES256') : all;
  return offered.map((value) => ({ value, title: value }));
}
