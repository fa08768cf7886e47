import type { BindingTemplate } from '../wire/binding_template.ts';
import type { HostBindingRecord } from '../wire/host_binding.ts';
import type { SecretRecord } from '../wire/secrets.ts';
import { isReservedVaultPath } from '../model/vault_path.ts';
import { sealLines } from './seal_advice.ts';

/** How a credential can be released in plaintext. */
export const UNSEALED_EVENT = 'sandbox.proxy.credential_unsealed';

/** The status of one credential: how it is sealed, or why it is not and how to seal it. */
export interface Sealability {
  readonly path: string;
  readonly ref: string;
  readonly owner: SecretRecord['owner'];
  readonly sealed: boolean;
  /** Null if it is sealed. */
  readonly why_not: 'no_binding' | 'handed_out_unsealed' | null;
  /** The users of the credential other than bindings: a connector, or an MCP server. */
  readonly kept_for: 'connector' | 'mcp_server' | null;
  /** The bindings that add it to requests at the proxy. */
  readonly bindings: readonly {
    readonly id: string;
    readonly host: string;
    readonly scheme: string;
    readonly emit_mechanism: string;
  }[];
  /** The last time that the value stored now was released in plaintext. */
  readonly unsealed: Omit<UnsealedRelease, 'event_id' | 'ref'> | null;
  /** Commands, in the order to run them. */
  readonly how_to_seal: readonly string[];
}

/** One release of a credential in plaintext. */
export interface UnsealedRelease {
  readonly event_id: string;
  readonly ref: string;
  readonly time: string;
  readonly session_id: string | null;
  /** The requested image of the session's container. */
  readonly image: string | null;
  readonly host: string | null;
  readonly reason: string | null;
}

/** The fields of an audit event that are used here. */
interface ReportedEvent {
  readonly id: string;
  readonly type: string;
  readonly time: string;
  readonly sidecar_id: string | null;
  readonly session_id: string | null;
  readonly data: {
    readonly 'svc.proxy.credential_ref'?: string | undefined;
    readonly 'svc.proxy.upstream.host'?: string | undefined;
    readonly 'svc.proxy.reason'?: string | undefined;
    readonly 'svc.sandbox.image'?: string | undefined;
  };
}

/** A connector with the reference of its credential. */
interface ServedConnector {
  readonly owner: SecretRecord['owner'];
  readonly credential: { readonly ref: string };
}

export interface SealabilityFacts {
  readonly secrets: readonly SecretRecord[];
  readonly bindings: readonly HostBindingRecord[];
  readonly connectors: readonly ServedConnector[];
  /** The releases by the caller's own sidecars ({@link ownReleases}), newest first. */
  readonly releases: readonly UnsealedRelease[];
  readonly templates: readonly BindingTemplate[];
}

/** The log covers the whole enterprise: a colleague's event may name a path that the caller has too. Only the caller's own sidecars count. */
export function ownReleases(events: readonly ReportedEvent[], sidecarIds: Iterable<string>): UnsealedRelease[] {
  const own = new Set(sidecarIds);
  return events
    .filter(({ type, sidecar_id: id }) => type === UNSEALED_EVENT && id !== null && own.has(id))
    .map((event) => toRelease(event));
}

/**
 * Reports for every credential how it is sealed. A credential that was released in plaintext counts as unsealed, even if it
 * has a binding, until a new value is stored: a value that was in an environment may be anywhere.
 */
export function sealabilityOf(facts: SealabilityFacts): readonly Sealability[] {
  return facts.secrets.map((secret) => {
    const bindings = facts.bindings.filter((binding) => isNamedBy(secret, binding));
    const keptFor = keeperOf(secret, facts.connectors);
    const last = findLastRelease(secret, facts.releases);
    const isCarried = bindings.length > 0 || keptFor !== null;
    const whyNot = last !== null ? 'handed_out_unsealed' : isCarried ? null : 'no_binding';
    return {
      path: secret.path,
      ref: secret.ref,
      owner: secret.owner,
      sealed: whyNot === null,
      why_not: whyNot,
      kept_for: keptFor,
      bindings: bindings.map(({ id, host, scheme, emit_mechanism }) => ({ id, host, scheme, emit_mechanism })),
      unsealed: last && withoutNames(last),
      how_to_seal: [
        ...(isCarried ? [] : sealLines(secret, last?.host ?? null, facts.templates)),
        ...(last === null ? [] : [`svc secret set ${secret.path}`]),
      ],
    };
  });
}

/** A reference resolves only in the namespace of its binding's owner. */
function isNamedBy(secret: SecretRecord, binding: HostBindingRecord): boolean {
  return binding.owner === secret.owner && [binding.credential_ref, binding.session_token_ref].includes(secret.ref);
}

/** What the service itself stores belongs to a connector or to an MCP server. A connector may also use its owner's secret. */
function keeperOf({ owner, path, ref }: SecretRecord, connectors: readonly ServedConnector[]): Sealability['kept_for'] {
  if (connectors.some((connector) => connector.owner === owner && connector.credential.ref === ref)) return 'connector';
  if (!isReservedVaultPath(path)) return null;
  return path.startsWith('connectors/') ? 'connector' : 'mcp_server';
}

/** Only a user's own credentials are ever released; one stored after the release is another value. */
function findLastRelease(secret: SecretRecord, releases: readonly UnsealedRelease[]): UnsealedRelease | null {
  if (secret.owner !== 'personal') return null;
  const last = releases.find(({ ref }) => ref === secret.ref);
  return last === undefined || last.time < secret.updated_at ? null : last;
}

function toRelease({ id, time, session_id, data }: ReportedEvent): UnsealedRelease {
  return {
    event_id: id,
    ref: data['svc.proxy.credential_ref'] ?? '',
    time,
    session_id,
    image: data['svc.sandbox.image'] ?? null,
    host: data['svc.proxy.upstream.host'] ?? null,
    reason: data['svc.proxy.reason'] ?? null,
  };
}

function withoutNames({ time, session_id, image, host, reason }: UnsealedRelease): Sealability['unsealed'] {
  return { time, session_id, image, host, reason };
}
