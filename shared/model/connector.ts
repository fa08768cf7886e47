import type { CredentialRef, Effect, Owner } from './host_binding.ts';

/** The methods an operation may have (specification section 4, Connector operations). */
export const OPERATION_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
export type OperationMethod = (typeof OPERATION_METHODS)[number];

/** The methods whose args are the JSON body; every other method sends them as the query. */
const BODY_METHODS: readonly OperationMethod[] = ['POST', 'PATCH', 'PUT'];

/** The methods of an operation that only reads (RFC 9110 section 9.2.1). */
export const SAFE_METHODS: readonly string[] = ['GET', 'HEAD'];

/** A path has at most this many segments: the matcher keeps one bit for each. */
export const MAX_PATH_SEGMENTS = 30;

/** True when an operation's args, those of its path aside, are sent as a JSON body. */
export function sendsBody(method: OperationMethod): boolean {
  return BODY_METHODS.includes(method);
}

export const INPUT_PLACES = ['path', 'query', 'body'] as const;
export type InputPlace = (typeof INPUT_PLACES)[number];

export const INPUT_TYPES = ['string', 'integer', 'number', 'boolean', 'array', 'object'] as const;
export type InputType = (typeof INPUT_TYPES)[number];

/** One argument of an operation. */
export interface OperationInput {
  readonly name: string;
  readonly in: InputPlace;
  readonly type: InputType;
  readonly required: boolean;
  readonly description: string;
}

/** What a GraphQL document asks for at its top level: its type, and the names of its fields. */
export const GRAPHQL_FIELDS_SOURCE = 'graphql.fields';

/**
 * What the audit event of a run says of it. `source` is `<place>.<input>`, `status` or `graphql.fields`; `redact` records
 * only that it was there.
 */
export interface AuditField {
  readonly name: string;
  readonly source: string;
  readonly redact: boolean;
}

export const APPROVALS = ['none', 'required'] as const;
export type ApprovalRule = (typeof APPROVALS)[number];

export const GRAPHQL_TYPES = ['query', 'mutation', 'subscription'] as const;
export type GraphqlType = (typeof GRAPHQL_TYPES)[number];

/** Which GraphQL documents at a method and path are an operation. */
export interface GraphqlSelector {
  readonly type: GraphqlType;
  /** Top-level fields, by their names in the schema; absent: every field that no other operation of the connector lists. */
  readonly fields?: readonly string[];
}

/**
 * An operation of a connector, identified by method and path on each of its hosts, and at a GraphQL endpoint by the document
 * of the request.
 */
export interface Operation {
  readonly name: string;
  readonly method: OperationMethod;
  /** Exact, or with `{name}` in place of a whole segment. */
  readonly path: string;
  readonly summary: string;
  readonly description: string;
  /** The hosts of this operation; absent: those of the spec. */
  readonly hosts?: readonly string[];
  /** Absent: the request's method and path are all that counts. */
  readonly graphql?: GraphqlSelector;
  readonly approval: ApprovalRule;
  readonly effect: Effect;
  readonly inputs: readonly OperationInput[];
  readonly audit: readonly AuditField[];
}

export const CREDENTIAL_KINDS = ['api_key', 'oauth2'] as const;
export type CredentialKind = (typeof CREDENTIAL_KINDS)[number];

/** The credential binding of a spec (specification section 2, Connector spec): injected as an upstream bearer token. */
export interface ConnectorCredential {
  readonly kind: CredentialKind;
  /** Where an oauth2 credential is authorised and refreshed; whoever installs the spec may give others. */
  readonly authorizationUrl?: string;
  readonly tokenUrl?: string;
  readonly deviceAuthorizationUrl?: string;
  readonly scopes: readonly string[];
}

/** A connector spec, validated (design section 5, Connector spec). */
export interface ConnectorSpec {
  /** `publisher/name`. */
  readonly fqn: string;
  readonly version: string;
  readonly title: string;
  readonly description: string;
  /** Allowed upstream hosts, canonical; the first one builds upstream URLs. */
  readonly hosts: readonly string[];
  readonly credential: ConnectorCredential;
  readonly operations: readonly Operation[];
}

/** A spec as it is installed for an owner. */
export interface InstalledConnector {
  readonly id: string;
  readonly owner: Owner;
  readonly spec: ConnectorSpec;
  /** SHA-256, hex, over the spec's canonical JSON. */
  readonly contentHash: string;
  readonly credential: CredentialRef;
}

/** The hosts an operation may be sent to; never empty. */
export function operationHosts(spec: ConnectorSpec, operation: Operation): readonly string[] {
  return operation.hosts ?? spec.hosts;
}

/** The vault path of a connector's credential; the prefix is reserved for it. */
export function connectorVaultPath(fqn: string): string {
  return `connectors/${fqn}`;
}

/** The `{name}`s of a path template, in order. */
export function pathParameters(path: string): readonly string[] {
  return Array.from(path.matchAll(/\{([^{}/]*)\}/g), ([, name]) => name ?? '');
}
