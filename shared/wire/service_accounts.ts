import { z } from 'zod';
import { enrolFields, enrolReply } from './sidecars.ts';
import { id, line, page, pageQuery, time } from './primitives.ts';
import { revision } from '../net/http/if_match.ts';
import { secretParams } from './secrets.ts';

/**
 * What the sidecars of a service account may use: its own secrets, bindings, connectors and MCP servers, or those of the
 * enterprise too.
 */
export const SERVICE_ACCOUNT_REACHES = ['own', 'enterprise'] as const;
export type ServiceAccountReach = (typeof SERVICE_ACCOUNT_REACHES)[number];

/** How long a sidecar of a service account may live: at least a few minutes, at most a day. */
export const MIN_JOIN_MINUTES = 5;
export const MAX_JOIN_MINUTES = 24 * 60;
/** Long enough for most jobs. */
const DEFAULT_JOIN_MINUTES = 60;

const MAX_RULES = 20;
/** The keys of an issuer that the control plane cannot reach. */
const MAX_KEYS = 10;

const issuer = z.url({ protocol: /^https?$/ }).max(500);
const audience = z
  .string()
  .trim()
  .min(1, 'is empty: write what the token is for, such as the URL of the control plane')
  .max(500);
const claims = z
  .record(z.string().min(1).max(200), z.string().max(500))
  .refine((rules) => Object.keys(rules).length <= MAX_RULES, `has more than ${MAX_RULES} rules`);
const key = z.record(z.string().max(40), z.unknown());

const policyFields = {
  name: line(100).trim().min(1, 'is empty: name the job, such as deploy'),
  /** Whose tokens are taken, as their `iss` has it. */
  issuer,
  /** Their `aud`, which must be this alone. Default: the URL of the control plane. */
  audience: audience.optional(),
  /** What they must say, by claim; a `*` at the end of a value makes it a prefix. */
  claims,
  reach: z.enum(SERVICE_ACCOUNT_REACHES).default('own'),
  /** How long its sidecars live, from the time they join. */
  minutes: z.number().int().min(MIN_JOIN_MINUTES).max(MAX_JOIN_MINUTES).default(DEFAULT_JOIN_MINUTES),
  /** The issuer's public keys (RFC 7517), if the control plane cannot reach it. Otherwise they are read from the issuer. */
  keys: z.array(key).min(1).max(MAX_KEYS).optional(),
};

/** `POST /v1/service-accounts`. */
export const serviceAccountInput = z.strictObject(policyFields).meta({ id: 'ServiceAccountInput' });
export type ServiceAccountInput = z.infer<typeof serviceAccountInput>;

/** `PUT /v1/service-accounts/{id}`: replaces every field; with the `revision` that was read, only if nobody has changed it since. */
export const serviceAccountChange = z
  .strictObject({ ...policyFields, suspended: z.boolean().default(false), revision })
  .meta({ id: 'ServiceAccountChange' });
export type ServiceAccountChange = Omit<z.infer<typeof serviceAccountChange>, 'revision'>;

export const serviceAccountRecord = z
  .object({
    id: id('usr'),
    name: z.string(),
    issuer: z.string(),
    audience: z.string(),
    claims,
    reach: z.enum(SERVICE_ACCOUNT_REACHES),
    minutes: z.number().int(),
    keys: z.array(key).nullable(),
    /** Its sidecars that have not ended. */
    live_sidecars: z.number().int(),
    created_at: time,
    /** When a sidecar last joined; null before the first. */
    last_joined_at: time.nullable(),
    suspended_at: time.nullable(),
    revision,
  })
  .meta({ id: 'ServiceAccount' });
export type ServiceAccountRecord = z.infer<typeof serviceAccountRecord>;

export const serviceAccountParams = z.strictObject({ id: id('usr') });
export const serviceAccountsQuery = z.strictObject({ ...pageQuery });
export const serviceAccountsPage = page(serviceAccountRecord).meta({ id: 'ServiceAccountsPage' });

/** The largest token that is read. Those of GitHub and Kubernetes have about 2 KiB. */
export const MAX_JOIN_TOKEN_CHARACTERS = 16 * 1024;

/** `POST /auth/join`, without a sign-in: the token of a job for a sidecar that lives for a while. */
export const joinInput = z
  .strictObject({
    service_account: id('usr'),
    token: z.string().min(1).max(MAX_JOIN_TOKEN_CHARACTERS),
    /** Less than the service account allows. */
    minutes: z.number().int().min(MIN_JOIN_MINUTES).max(MAX_JOIN_MINUTES).optional(),
    ...enrolFields,
  })
  .meta({ id: 'Join' });
export type JoinInput = z.infer<typeof joinInput>;

export const joinReply = enrolReply.extend({ expires_at: time }).meta({ id: 'JoinedSidecar' });
export type JoinReply = z.infer<typeof joinReply>;

/** Why a token was refused, in `details.reason`. */
export const JOIN_REFUSALS = [
  /** No service account has this id, or it is suspended. */
  'unknown_service_account',
  'not_a_token',
  'algorithm',
  'issuer',
  'audience',
  'expired',
  'not_yet_valid',
  'lives_too_long',
  'signature',
  'used_before',
  'claims',
] as const;
export type JoinRefusal = (typeof JOIN_REFUSALS)[number];

/** What a service account owns is named below it. */
export const managedSecretParams = z.strictObject({ id: id('usr'), path: secretParams.shape.path });
export const managedBindingParams = z.strictObject({ id: id('usr'), binding: id('bnd') });
export const managedListQuery = z.strictObject({ ...pageQuery });
