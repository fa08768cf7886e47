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
 * Compiles bindings for lookup: one map read for an exact host, then one for each label. For one pattern the personal
 * bindings replace the enterprise's. Order among the bindings of one pattern is kept.
 */
export function compilePolicy(bindings: readonly HostBinding[]): Policy {
  const byPattern = groupByPattern(bindings);
  return {
    bindingsFor(host) {
      const exact = byPattern.get(host);
      if (exact !== undefined) return exact;
      for (let dot = host.indexOf('.', 1); dot > 0; dot = host.indexOf('.', dot + 1)) {
        const found = byPattern.get(`*${host.slice(dot)}`);
        if (found !== undefined) return found;
      }
      return NONE;
    },
  };
}

/** Decides which path a request takes; the bindings are those of the pattern that wins for its host. */
export function resolve(policy: Policy, request: ResolvableRequest): Resolution {
  const bindings = policy.bindingsFor(request.host);
  return bindings.length === 0 ? PASSTHROUGH : { kind: 'binding', bindings };
}

function groupByPattern(bindings: readonly HostBinding[]): ReadonlyMap<string, readonly HostBinding[]> {
  const groups = new Map<string, HostBinding[]>();
  for (const binding of bindings) {
    const group = groups.get(binding.host);
    if (group === undefined) groups.set(binding.host, [binding]);
    else group.push(binding);
  }
  for (const [pattern, group] of groups) groups.set(pattern, withOverride(group));
  return groups;
}

function withOverride(group: HostBinding[]): HostBinding[] {
  const personal = group.filter((binding) => binding.owner === 'personal');
  return personal.length === 0 ? group : personal;
}
