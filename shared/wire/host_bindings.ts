import { z } from 'zod';
import { APPROVALS } from '../model/connector.ts';
import { EFFECTS, OWNERS } from '../model/host_binding.ts';
import { hostBindingRecord } from './host_binding.ts';
import { chosenSecrets } from './host_binding_fields.ts';
import { id, owner, page, pageQuery } from './primitives.ts';

/** `GET /v1/host-bindings`: in the order of owner and host. */
export const hostBindingsQuery = z.strictObject({
  ...pageQuery,
  owner: owner.optional(),
  host: z.string().max(253).optional(),
});
export const hostBindingsPage = page(hostBindingRecord).meta({ id: 'HostBindingsPage' });
export const hostBindingParams = z.strictObject({ id: id('bnd') });

/** When one of the bindings of a host is used. */
export const USED = ['default', 'placeholder', 'not_chosen'] as const;

/** `POST /v1/host-bindings/explain`: what the proxy would do with a request. */
export const explainInput = z
  .strictObject({
    method: z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/, 'is not an HTTP method'),
    url: z.string().max(16_384),
    /** The document of its body, for a request to a GraphQL endpoint of a connector. */
    document: z.string().max(65_536).optional(),
    /** Its JSON body, for a request to a connector's operations that have rules for it. It is neither stored nor logged. */
    body: z.string().max(65_536).optional(),
    /** In order: the secrets that a session would use where a host is bound to several, and who chose each. */
    use_secrets: chosenSecrets.optional(),
  })
  .meta({ id: 'Explain' });
export type ExplainInput = z.infer<typeof explainInput>;

const explainedBinding = z.object({
  id: id('bnd'),
  host: z.string(),
  owner: z.enum(OWNERS),
  scheme: z.string(),
  emit_mechanism: z.string(),
  credential_ref: z.string(),
  /** False: the proxy would answer 503 `credential_unavailable`. */
  credential_stored: z.boolean(),
  /**
   * When it is used, if the host has several: by a request without a placeholder (`default`), only by one with its placeholder
   * (`placeholder`), or never in this session (`not_chosen`). Absent in replies of earlier versions.
   */
  used: z.enum(USED).optional(),
  /** The refusal by this binding's contract, or null if it admits the request. */
  refusal: z.object({ code: z.string(), message: z.string() }).nullable(),
});

const explainedOperation = z.object({
  connector_id: id('con'),
  owner: z.enum(OWNERS),
  fqn: z.string(),
  version: z.string(),
  operation: z.string(),
  effect: z.enum(EFFECTS),
  /** `required`: the request is held until a person decides. */
  approval: z.enum(APPROVALS),
  credential_ref: z.string(),
  /** False: the proxy would answer 503 `credential_unavailable`. */
  credential_stored: z.boolean(),
});

export const explainReply = z
  .object({
    decision: z.enum(['connector', 'binding', 'passthrough', 'refused']),
    /** Why, as sentences in the order of the decisions. */
    reasons: z.array(z.string()),
    method: z.string(),
    host: z.string(),
    /** Without its query. */
    path: z.string(),
    /** The bindings of the winning pattern; the proxy chooses among several by the sentinel in the request. */
    bindings: z.array(explainedBinding),
    /** The installed connector's operation of the request; it comes before every binding. */
    operation: explainedOperation.nullable(),
    /** The code of a refusal. */
    code: z.string().nullable(),
  })
  .meta({ id: 'Explanation' });
export type ExplainReply = z.infer<typeof explainReply>;
