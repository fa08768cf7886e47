import { z } from 'zod';
import { EMAIL_PATTERN } from '../model/email.ts';
import { clientUrlProblem } from '../net/client_url.ts';
import { enterpriseReply } from './account.ts';
import { ROLES } from '../model/role.ts';
import { REGISTERED_PREFIX } from './mcp/mcp_clients.ts';
import { amount, departureReply } from './members.ts';
import { id, line, time } from './primitives.ts';
import { revision } from '../net/http/if_match.ts';

const MAX_DOMAINS = 100;
const domain = z
  .string()
  .max(253)
  .regex(
    /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)+$/,
    'is not a domain: write it in lower case, such as acme.com',
  );
const providerName = z
  .string()
  .regex(/^[a-z][a-z0-9_-]{0,31}$/, "is not a provider's name: GET /auth/providers lists them");

export const enterpriseName = line(200).min(1);

/** How the members of an enterprise sign in. */
const settings = {
  name: enterpriseName,
  billing_email: z.string().max(254).regex(EMAIL_PATTERN, 'is not an email address').nullable(),
  /** Only verified addresses in these domains may sign in; empty: any. */
  allowed_domains: z.array(domain).max(MAX_DOMAINS),
  /** Only these providers may be used, besides the enterprise's own; null: all that are configured. */
  allowed_providers: z.array(providerName).max(20).nullable(),
  /** Only the enterprise's own provider may be used. */
  sso_required: z.boolean(),
};

const oidc = {
  issuer: z.url({ protocol: /^https?$/ }).max(500),
  client_id: z.string().regex(/^[\x21-\x7e]{1,500}$/, 'must be 1 to 500 characters of ASCII without spaces'),
  /**
   * Domains of the enterprise: their users are sent to its provider, and a user with a verified address there joins the
   * enterprise. The enterprise has to prove that it owns each domain.
   */
  domains: z.array(domain).max(MAX_DOMAINS),
};

/**
 * Who joins by a proven domain: `automatic`, people who sign in for the first time; `request`, those whom an admin accepts;
 * `closed`, nobody. With the first two, people who have an account already ask. The enterprise's own provider adds its
 * people in any case.
 */
export const DOMAIN_JOINING = ['automatic', 'request', 'closed'] as const;
export type DomainJoining = (typeof DOMAIN_JOINING)[number];

const REGISTERED = new RegExp(`^${REGISTERED_PREFIX}[\\w-]{1,100}$`);
const mcpClientId = z.string().check((context) => {
  if (REGISTERED.test(context.value)) return;
  const problem = clientUrlProblem(context.value);
  if (problem === null) return;
  const message = `${problem}: give the URL of a client's metadata document, or the id that it has registered here`;
  context.issues.push({ code: 'custom', message, input: context.value });
});
/** Clients that the enterprise's own OpenID provider may connect for members, who are not asked (decision 0158). */
const providerMcpClients = z.array(mcpClientId).max(50);

const MAX_METADATA_CHARACTERS = 200_000;

/** `PUT /v1/enterprise`: replaces the settings; with the `revision` that was read, only if nobody has changed them since. */
export const enterpriseInput = z
  .strictObject({
    ...settings,
    /** Absent: stays as it is. */
    domain_joining: z.enum(DOMAIN_JOINING).optional(),
    /** Absent: stays as it is while `oidc` has the same issuer, and is empty otherwise. */
    provider_mcp_clients: providerMcpClients.optional(),
    oidc: z
      .strictObject({
        ...oidc,
        /** Absent: keeps the secret, for the same issuer and client. */
        client_secret: z
          .string()
          .regex(/^[\x21-\x7e]{1,1000}$/, 'must be ASCII without spaces')
          .optional(),
      })
      .nullable(),
    /** The enterprise's own SAML 2.0 provider, instead of `oidc`; absent or null: none. */
    saml: z
      .strictObject({
        /** Read now, once. Without it and `metadata`, the stored provider stays. */
        metadata_url: z
          .url({ protocol: /^https?$/ })
          .max(500)
          .optional(),
        /** The provider's metadata, as XML. */
        metadata: z.string().min(1).max(MAX_METADATA_CHARACTERS).optional(),
        domains: oidc.domains,
      })
      .nullable()
      .optional(),
    revision,
  })
  .meta({ id: 'EnterpriseInput' });
export type EnterpriseInput = Omit<z.infer<typeof enterpriseInput>, 'revision'>;

/** `GET /v1/enterprise`. No reply contains the client's secret. */
export const enterpriseSettings = z
  .object({
    ...enterpriseReply.shape,
    ...settings,
    domain_joining: z.enum(DOMAIN_JOINING).default('automatic'),
    provider_mcp_clients: z.array(z.string()).default([]),
    oidc: z.object({ ...oidc, redirect_path: z.string() }).nullable(),
    saml: z
      .object({
        entity_id: z.string(),
        sso_url: z.string(),
        /** SHA-256 of each signing certificate, in hexadecimal. */
        certificates: z.array(z.string()),
        /** Where the metadata were read; null if they were pasted. */
        metadata_url: z.string().nullable(),
        domains: oidc.domains,
        /** Our metadata, for the provider. */
        metadata_path: z.string(),
        acs_path: z.string(),
      })
      .nullable(),
    revision,
  })
  .meta({ id: 'EnterpriseSettings' });
export type EnterpriseSettings = z.infer<typeof enterpriseSettings>;

/** An enterprise that the caller has a user in. */
const membershipRecord = z
  .object({
    id: id('ent'),
    name: z.string(),
    slug: z.string(),
    role: z.enum(ROLES),
    user_id: id('usr'),
    /** Whether the call was made by this user. */
    current: z.boolean(),
    suspended_at: time.nullable(),
  })
  .meta({ id: 'Membership' });
export type MembershipRecord = z.infer<typeof membershipRecord>;

/** `POST /v1/enterprises/{id}/sign-in`. */
export const membershipParams = z.strictObject({ id: id('ent') });

/** `GET /v1/enterprises`. */
export const membershipsReply = z.object({ items: z.array(membershipRecord) }).meta({ id: 'Memberships' });

/** `GET /v1/enterprise/deletion`: what would be deleted, revoked or signed out, of the enterprise and all of its users. */
export const deletionReply = z.object({ members: amount, ...departureReply.shape }).meta({ id: 'EnterpriseDeletion' });
export type DeletionReply = z.infer<typeof deletionReply>;

/** `DELETE /v1/enterprise?confirm=SLUG`. */
export const deletionQuery = z.strictObject({ confirm: z.string().max(200) });
