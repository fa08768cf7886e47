import type { Owner, InjectionScheme, EmitMechanism } from '../model/host_binding.ts';
import type { RefusalReason } from '../model/refusal.ts';
import { ok, type Result } from '../model/result.ts';
import type { Policy } from '../resolve/resolve.ts';

/** A binding as an explanation shows it; `credential_ref` names the vault entry, never its value. */
export interface ExplainedBinding {
  readonly id: string;
  readonly owner: Owner;
  readonly host: string;
  readonly scheme: InjectionScheme;
  readonly emit_mechanism: EmitMechanism;
  readonly credential_ref: string;
}

/** Which path a request would take, and why. */
export interface Explanation {
  readonly path: 'binding' | 'passthrough' | 'refused';
  /** The refusal's code when `path` is `refused`, else null. */
  readonly reason: RefusalReason | null;
  /** The HTTP status of the refusal, else null. */
  readonly status: number | null;
  /** The bindings of the winning pattern; more than one when accounts are told apart by sentinels. */
  readonly bindings: readonly ExplainedBinding[];
  /** One sentence per step, in the order the proxy decides. */
  readonly why: readonly string[];
}

export interface ExplainError {
  readonly field: 'method' | 'url';
  readonly message: string;
}

/** Explains which path a request would take through the proxy under a policy, without sending anything. */
export function explainRequest(
  _policy: Policy,
  _request: { readonly method: string; readonly url: string },
): Result<Explanation, ExplainError> {
  return ok({ path: 'passthrough', reason: null, status: null, bindings: [], why: [] });
}
