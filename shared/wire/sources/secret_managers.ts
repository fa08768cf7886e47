import { z } from 'zod';
import { providerUrl } from '../connectors/connector_credentials.ts';
import { accessKeyIdText } from '../host_binding_fields.ts';
import { line } from '../primitives.ts';
import { awsRegion } from './aws_region.ts';

/** A name that is one segment of a path at most; a dot segment would be resolved to another path. */
const name = z
  .string()
  .regex(/^\.{0,2}[\w-][\w.-]{0,252}$/, 'is not a name: use letters, digits, _, - and ., as the service shows it');
const uuid = z.string().regex(/^[\da-z]{26}$/, 'is not an id of 1Password: give 26 letters and digits, from its URL');
const version = z.number().int().min(1).max(2_147_483_647).optional();
/** Of a secret whose value is a JSON object. Absent: the whole value. */
const jsonField = line(255).min(1).optional();
const origin = (example: string) =>
  providerUrl.refine((url) => !/[?#]/.test(url), `has more than the address: leave out a query, such as ${example}`);

export const awsSecretsManager = z.strictObject({
  kind: z.literal('aws_secrets_manager'),
  /** Of the caller, whose secret access key is the key of the source. */
  access_key_id: accessKeyIdText,
  region: awsRegion,
  /** The name or the ARN. */
  secret_id: z
    .string()
    .regex(/^[\w/+=.@:-]{1,2048}$/, 'is neither the name nor the ARN of a secret: give it as AWS shows it'),
  field: jsonField,
  /** Absent: AWSCURRENT. */
  version_stage: z
    .string()
    .regex(/^[\w+=,.@-]{1,256}$/, 'is not a stage, such as AWSPREVIOUS')
    .optional(),
  /** Default: that of the region. */
  secrets_manager_url: origin('https://secretsmanager.eu-central-1.amazonaws.com').optional(),
});

export const googleSecretManager = z.strictObject({
  kind: z.literal('google_secret_manager'),
  client_email: z.string().regex(/^[\x21-\x7e]{1,500}$/, 'is not the email of a service account'),
  key_id: z
    .string()
    .regex(/^[\x21-\x7e]{1,500}$/)
    .optional(),
  secret_resource: z
    .string()
    .regex(
      /^projects\/[a-z0-9][a-z0-9.:-]{0,62}\/(?:locations\/[a-z0-9-]{1,63}\/)?secrets\/[\w-]{1,255}$/,
      'is not the name of a secret: write projects/PROJECT/secrets/NAME, without a version',
    ),
  /** Absent: the latest. */
  version,
  field: jsonField,
  token_url: providerUrl.default('https://oauth2.googleapis.com/token'),
  /** Another one for regional secrets: https://secretmanager.LOCATION.rep.googleapis.com. */
  secret_manager_url: origin('https://secretmanager.googleapis.com').default('https://secretmanager.googleapis.com'),
});

export const onepasswordConnect = z.strictObject({
  kind: z.literal('onepassword_connect'),
  connect_url: origin('https://connect.example.com').refine(
    (url) => !/\/v1\/?$/.test(url),
    'ends with /v1: leave that out, such as https://connect.example.com',
  ),
  vault_id: uuid,
  item_id: uuid,
  /** The label or the id of the field. */
  field: line(255).min(1),
  /** The label or the id of the section, if fields of several sections have the same label. */
  section: line(255).min(1).optional(),
});

export const doppler = z.strictObject({
  kind: z.literal('doppler'),
  project: name,
  config: name,
  secret_name: name,
  doppler_url: origin('https://api.doppler.com').default('https://api.doppler.com'),
});

export const infisical = z.strictObject({
  kind: z.literal('infisical'),
  infisical_url: origin('https://eu.infisical.com').default('https://us.infisical.com'),
  /** Of a machine identity with Universal Auth, whose client secret is the key of the source. */
  client_id: z.string().regex(/^[\x21-\x7e]{1,500}$/, 'is not a client id'),
  project_id: name,
  environment: name,
  folder: z
    .string()
    .regex(/^\/(?:[\w-]{1,255}(?:\/[\w-]{1,255})*)?$/, 'is not a folder: begin with a slash, such as /ci')
    .default('/'),
  secret_name: name,
  version,
});

/** The fields of each kind, in the order in which people are shown them, and how each is written as a text. */
export const MANAGER_FIELDS = {
  aws_secrets_manager: {
    access_key_id: 'text',
    region: 'text',
    secret_id: 'text',
    field: 'text',
    version_stage: 'text',
    secrets_manager_url: 'text',
  },
  google_secret_manager: {
    client_email: 'text',
    secret_resource: 'text',
    version: 'number',
    field: 'text',
    key_id: 'text',
    token_url: 'text',
    secret_manager_url: 'text',
  },
  onepassword_connect: {
    connect_url: 'text',
    vault_id: 'text',
    item_id: 'text',
    field: 'text',
    section: 'text',
  },
  doppler: { project: 'text', config: 'text', secret_name: 'text', doppler_url: 'text' },
  infisical: {
    client_id: 'text',
    project_id: 'text',
    environment: 'text',
    folder: 'text',
    secret_name: 'text',
    version: 'number',
    infisical_url: 'text',
  },
} as const;
