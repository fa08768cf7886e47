import type { CredentialRef, Effect, Owner } from './host_binding.ts';

/** The methods an operation may have (specification section 4, Connector operations). */
export const OPERATION_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
export type OperationMethod = (typeof OPERATION_METHODS)[number];

/** The methods with args in a JSON body; every other method sends them in the query. */
const BODY_METHODS: readonly OperationMethod[] = ['POST', 'PATCH', 'PUT'];

/** The methods of read-only operations (RFC 9110 section 9.2.1). */
export const SAFE_METHODS: readonly string[] = ['GET', 'HEAD'];

/** A path has at most this many segments: the matcher keeps one bit for each. */
export const MAX_PATH_SEGMENTS = 30;

/** True if an operation's args, except those in the path, are sent as a JSON body. */
export function sendsBody(method: OperationMethod): boolean {
  return BODY_METHODS.includes(method);
}

export const INPUT_LOCATIONS = ['path', 'query', 'body'] as const;
type InputLocation = (typeof INPUT_LOCATIONS)[number];

export const INPUT_TYPES = ['string', 'integer', 'number', 'boolean', 'array', 'object'] as const;
export type InputType = (typeof INPUT_TYPES)[number];

/** One argument of an operation. */
export interface OperationInput {
  readonly name: string;
  readonly in: InputLocation;
  readonly type: InputType;
  readonly required: boolean;
  readonly description: string;
}

/** The top-level selection of a GraphQL document: its type and field names. */
export const GRAPHQL_FIELDS_SOURCE = 'graphql.fields';

/** A field of a run's audit event. `source` is `<place>.<input>`, `status` or `graphql.fields`; with `redact` only its presence is recorded. */
interface AuditField {
  readonly name: string;
  readonly source: string;
  readonly redact: boolean;
}

export const APPROVALS = ['none', 'required'] as const;
export type ApprovalRule = (typeof APPROVALS)[number];

export const GRAPHQL_TYPES = ['query', 'mutation', 'subscription'] as const;
export type GraphqlType = (typeof GRAPHQL_TYPES)[number];

/** The GraphQL documents, at a method and path, that belong to an operation. */
export interface GraphqlSelector {
  readonly type: GraphqlType;
  /** Top-level fields by schema name; absent: every field that no other operation of the connector lists. */
  readonly fields?: readonly string[];
}

/** A value that a rule can name. `null` counts as absent, because servers treat it so. */
export type JsonScalar = string | number | boolean;

/** A value of a JSON body that belongs to an operation: one of a list, or a number in a range with its ends included. */
export interface JsonRule {
  /** RFC 6901, through members of objects only. */
  readonly pointer: string;
  readonly equals?: readonly JsonScalar[];
  readonly atLeast?: number;
  readonly atMost?: number;
}

/**
 * An operation of a connector. It is identified by method and path on each of its hosts. If its document or its JSON body is
 * ruled, these decide too.
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
  /** Absent: no document is inspected. */
  readonly graphql?: GraphqlSelector;
  /** Never empty: all of them hold for a request of this operation. Absent: every body that no other operation's rules fit. */
  readonly json?: readonly JsonRule[];
  readonly approval: ApprovalRule;
  readonly effect: Effect;
  readonly inputs: readonly OperationInput[];
  readonly audit: readonly AuditField[];
}

export const CREDENTIAL_KINDS = ['api_key', 'oauth2'] as const;
export type CredentialKind = (typeof CREDENTIAL_KINDS)[number];

/** The credential binding of a spec (specification section 2, Connector spec): injected as an upstream bearer token. */
interface ConnectorCredential {
  readonly kind: CredentialKind;
  /** Where an oauth2 credential is authorised and refreshed; the installing user may override it. */
  readonly authorizationUrl?: string;
  readonly tokenUrl?: string;
  readonly deviceAuthorizationUrl?: string;
  /** Where the tokens are revoked (RFC 7009), on the origin of the token URL. */
  readonly revocationUrl?: string;
  readonly scopes: readonly string[];
  /** Set if the tokens are those of a program's own login: svc keeps them, and the program holds placeholders. */
  readonly login?: ProgramLogin;
}

export const TOKEN_REQUESTS = ['form', 'json'] as const;

/** The login of a program, such as a coding agent. Its only operation is the request for tokens at the token URL. */
export interface ProgramLogin {
  readonly clientId: string;
  /** How the body of a request for tokens is written. */
  readonly tokenRequest: (typeof TOKEN_REQUESTS)[number];
  /** The hosts whose bindings may use the access token. */
  readonly hosts: readonly string[];
  /** The paths at these hosts, with all below them, at which it is used. An endpoint that issues lasting credentials is none of them. */
  readonly paths: readonly string[];
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

/** An installed spec with its owner. */
export interface InstalledConnector {
  readonly id: string;
  readonly owner: Owner;
  readonly spec: ConnectorSpec;
  /** SHA-256, hex, over the spec's canonical JSON. */
  readonly contentHash: string;
  readonly credential: CredentialRef;
  /** True until it first has a credential. Until then none of its operations is in force. */
  readonly inactive?: true;
}

/** The operations that can be run by name. The request for a program's tokens is answered by the proxy, and run by nobody. */
export function runnableOperations({ credential, operations }: ConnectorSpec): readonly Operation[] {
  return credential.login === undefined ? operations : [];
}

/** The allowed hosts of an operation; never empty. */
export function operationHosts(spec: ConnectorSpec, operation: Operation): readonly string[] {
  return operation.hosts ?? spec.hosts;
}

/** Every host that gets a connector's credential: those of all operations, which may be others than the spec's own. */
export function connectorHosts(spec: ConnectorSpec): readonly string[] {
  return [...new Set(spec.operations.flatMap((operation) => operationHosts(spec, operation)))];
}

/** The vault path of a credential that is stored for a connector alone; the prefix is reserved for it. */
export function connectorVaultPath(fqn: string): string {
  return `connectors/${fqn}`;
}

/** The program whose login a connector keeps, by the connector's name; null for any other connector. */
export function programOfLogin(fqn: string): string | null {
  return fqn.startsWith('login/') ? fqn.slice('login/'.length) : null;
}

/** The connector whose credential a vault path is; null if it is none's. */
export function connectorOfVaultPath(path: string): string | null {
  return /^connectors\/([^/]+\/[^/]+)$/.exec(path)?.[1] ?? null;
}

/** The connectors in force, one per name: a personal one replaces the enterprise's, as with bindings. An inactive one replaces none. */
export function connectorsInForce(installed: readonly InstalledConnector[]): readonly InstalledConnector[] {
  const byName = new Map<string, InstalledConnector>();
  for (const connector of installed) {
    if (connector.inactive === true) continue;
    if (connector.owner === 'personal' || !byName.has(connector.spec.fqn)) byName.set(connector.spec.fqn, connector);
  }
  return [...byName.values()];
}

/** The `{name}`s of a path template, in order. */
export function pathParameters(path: string): readonly string[] {
  return Array.from(path.matchAll(/\{([^{}/]*)\}/g), ([, name]) => name ?? '');
}
