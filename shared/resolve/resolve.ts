import type { HostBinding } from '../model/host_binding.ts';

/** The host bindings in force, compiled for lookup by host. */
export interface Policy {
  /**
   * Every binding of the pattern that wins for a canonical host (lower-case ASCII): an exact host beats a wildcard, a
   * longer suffix a shorter one. Empty when no pattern matches.
   */
  bindingsFor(host: string): readonly HostBinding[];
}

/** What of a request decides which path it takes. */
export interface ResolvableRequest {
  readonly method: string;
  readonly host: string;
  readonly path: string;
}

/** The path a request takes (specification section 1, Request resolution order). */
export type Resolution =
  | { readonly kind: 'binding'; readonly bindings: readonly HostBinding[] }
  | { readonly kind: 'passthrough' };

const PASSTHROUGH: Resolution = { kind: 'passthrough' };
const NONE: readonly HostBinding[] = [];

/**
 * Compiles bindings (with canonical hosts) for lookup: one map is read for the exact host, then one for each of its
 * labels. For one pattern the personal bindings replace the enterprise's; their order is kept.
 */
export function compilePolicy(bindings: readonly HostBinding[]): Policy {
  const exact = new Map<string, HostBinding[]>();
  const bySuffix = new Map<string, HostBinding[]>();
  for (const binding of bindings) {
    if (binding.host.startsWith('*')) add(bySuffix, binding.host.slice(1), binding);
    else add(exact, binding.host, binding);
  }
  const maxLength = Array.from(bySuffix.keys()).reduce((max, suffix) => Math.max(max, suffix.length), 0);
  return { bindingsFor: (host) => exact.get(host) ?? longestSuffix(bySuffix, maxLength, host) };
}

/** Decides which path a request takes; the bindings are those of the pattern that wins for its host. */
export function resolve(policy: Policy, request: ResolvableRequest): Resolution {
  const bindings = policy.bindingsFor(request.host);
  return bindings.length === 0 ? PASSTHROUGH : { kind: 'binding', bindings };
}

/**
 * Goes from the left, so that the first suffix found is the longest; the host itself is never its own suffix. Tails
 * longer than every known suffix are not looked up, so that a name of many labels costs no more than another.
 */
function longestSuffix(
  bySuffix: ReadonlyMap<string, readonly HostBinding[]>,
  maxLength: number,
  host: string,
): readonly HostBinding[] {
  const start = Math.max(1, host.length - maxLength);
  for (let dot = host.indexOf('.', start); dot > 0; dot = host.indexOf('.', dot + 1)) {
    const found = bySuffix.get(host.slice(dot));
    if (found !== undefined) return found;
  }
  return NONE;
}

function add(groups: Map<string, HostBinding[]>, key: string, binding: HostBinding): void {
  const group = groups.get(key);
  const owner = group?.[0]?.owner;
  if (group === undefined || (owner === 'enterprise' && binding.owner === 'personal')) groups.set(key, [binding]);
  else if (owner === binding.owner) group.push(binding);
}
