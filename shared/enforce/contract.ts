import type { Effect, HostBinding } from '../model/host_binding.ts';
import { refusal, type Refusal } from '../model/refusal.ts';
import { err, ok, type Result } from '../model/result.ts';
import { isMethodOverrideHeader } from '../net/http/method_override.ts';

/** The parts of a request that the contract is checked against. */
export interface ContractRequest {
  /** The canonical upstream host (see `hostOnPort`). */
  readonly host: string;
  readonly method: string;
  /** The header fields that the client sent; only names are used. */
  readonly fields: readonly { readonly name: string }[];
  /** True if the host has operations that need an approval: then a binding without an effect counts as `read`. */
  readonly besideApprovals: boolean;
}

/** Methods that effect `read` admits: the safe ones (RFC 9110 section 9.2.1) without TRACE, which echoes credentials. */
const READ_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * Checks a binding's contract before any credential is looked up (specification section 5): the upstream host is among the
 * allowed hosts, if there are any, and the method satisfies the effect. Refuses with `host_not_allowed` or
 * `effect_not_allowed`.
 */
export function enforceContract(binding: HostBinding, request: ContractRequest): Result<void, Refusal> {
  if (binding.allowedHosts.length > 0 && !binding.allowedHosts.includes(request.host)) {
    return err(
      refusal(
        'host_not_allowed',
        `the binding for ${binding.host} allows only ${binding.allowedHosts.join(', ')}, and the request goes to ${request.host}; add the host to allowed_hosts if it may have the credential`,
      ),
    );
  }
  const problem = effectProblem(binding.effect, request);
  if (problem === null) return ok(undefined);
  const message = `the binding for ${binding.host} ${problem}`;
  const fix = `; if the binding may do more there, set its effect with "svc binding effect ${binding.id} write"`;
  return err(refusal('effect_not_allowed', binding.effect === undefined ? `${message}${fix}` : message));
}

/** Why an effect does not admit a request, in words that follow what has the effect; null if it does. */
export function effectProblem(effect: Effect | undefined, request: ContractRequest): string | null {
  const acting = effect ?? (request.besideApprovals ? 'read' : undefined);
  const problem = acting === 'read' ? readProblem(request) : null;
  if (problem === null) return null;
  return effect === undefined
    ? `has no effect, and counts as "read" because a connector for ${request.host} has operations that need an approval: ${problem}`
    : `has effect "read": ${problem}`;
}

/** Why a request is not limited to reading; null if it is. */
function readProblem({ method, fields }: ContractRequest): string | null {
  if (!READ_METHODS.has(method)) return `the method is ${method}, and only GET, HEAD and OPTIONS are admitted`;
  for (const field of fields) {
    const name = field.name.toLowerCase();
    if (isMethodOverrideHeader(name)) return `the header ${name} can change the method of the request`;
    if (name === 'upgrade') return 'an upgraded connection is not limited to reading';
  }
  return null;
}
