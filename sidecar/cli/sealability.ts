import type { z } from 'zod';
import type { BindingTemplate } from '../../shared/wire/binding_template.ts';
import type { storedAuditEvent } from '../../shared/wire/audit_events.ts';
import type { HostBindingRecord } from '../../shared/wire/host_binding.ts';
import type { SecretRecord } from '../../shared/wire/secrets.ts';
import { sealLines } from './seal_advice.ts';

type Event = z.infer<typeof storedAuditEvent>;

/** What is known of one credential: how it is sealed, or why it is not and how to seal it. */
export interface Sealability {
  readonly path: string;
  readonly ref: string;
  readonly owner: SecretRecord['owner'];
  readonly sealed: boolean;
  /** Null when it is sealed. */
  readonly why_not: 'no_binding' | 'handed_out_unsealed' | null;
  /** The bindings that put it on requests at the proxy. */
  readonly bindings: readonly {
    readonly id: string;
    readonly host: string;
    readonly scheme: string;
    readonly emit_mechanism: string;
  }[];
  /** The last time that the value stored now was handed out as it is. */
  readonly unsealed: {
    readonly time: string;
    readonly session_id: string | null;
    readonly host: string | null;
    readonly reason: string | null;
  } | null;
  /** Commands, in the order to type them. */
  readonly how_to_seal: readonly string[];
}

export interface SealabilityFacts {
  readonly secrets: readonly SecretRecord[];
  readonly bindings: readonly HostBindingRecord[];
  /** `sandbox.proxy.credential_unsealed` of the caller's own sidecars, the newest first. */
  readonly unsealedEvents: readonly Event[];
  readonly templates: readonly BindingTemplate[];
}

/**
 * Says of every credential how it is sealed. One that was handed out as it is counts as unsealed, whatever binds it, until
 * another value is stored: what was in an environment may be anywhere.
 */
export function sealabilityOf(facts: SealabilityFacts): readonly Sealability[] {
  return facts.secrets.map((secret) => {
    const bindings = facts.bindings.filter((binding) => isNamedBy(secret, binding));
    const event = lastHandedOut(secret, facts.unsealedEvents);
    const whyNot = event !== null ? 'handed_out_unsealed' : bindings.length === 0 ? 'no_binding' : null;
    const host = event?.data['svc.proxy.upstream.host'] ?? null;
    return {
      path: secret.path,
      ref: secret.ref,
      owner: secret.owner,
      sealed: whyNot === null,
      why_not: whyNot,
      bindings: bindings.map(({ id, host: pattern, scheme, emit_mechanism }) => {
        return { id, host: pattern, scheme, emit_mechanism };
      }),
      unsealed: event && toUnsealed(event),
      how_to_seal: [
        ...(bindings.length === 0 ? sealLines(secret, host, facts.templates) : []),
        ...(event === null ? [] : [`svc secret set ${secret.path}`]),
      ],
    };
  });
}

/** A reference resolves in its binding owner's namespace alone. */
function isNamedBy(secret: SecretRecord, binding: HostBindingRecord): boolean {
  return binding.owner === secret.owner && [binding.credential_ref, binding.session_token_ref].includes(secret.ref);
}

/** Only a user's own credentials are ever handed out; one stored since then is another value. */
function lastHandedOut(secret: SecretRecord, events: readonly Event[]): Event | null {
  if (secret.owner !== 'personal') return null;
  const last = events.find((event) => event.data['svc.proxy.credential_ref'] === secret.ref);
  return last === undefined || last.time < secret.updated_at ? null : last;
}

function toUnsealed({ time, session_id, data }: Event): Sealability['unsealed'] {
  return {
    time,
    session_id,
    host: data['svc.proxy.upstream.host'] ?? null,
    reason: data['svc.proxy.reason'] ?? null,
  };
}
