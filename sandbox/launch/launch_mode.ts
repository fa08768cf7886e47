import { err, ok, type Result } from '../../shared/model/result.ts';
import type { SandboxProxy } from '../../shared/model/settings.ts';
import { ENGINES } from '../engine/engine_address.ts';

/** Where `svc launch` may run a command. `none` is known, and not supported (specification section 1). */
export const SANDBOX_MODES = [...ENGINES, 'none'] as const;
export type SandboxMode = (typeof SANDBOX_MODES)[number];

/** Why a launch goes without the proxy: the reasons of `sandbox.proxy.disabled`. */
export type DisabledReason = 'user_opt_out' | 'preflight_failed' | 'unsupported_sandbox_mode';

type ProxyDecision =
  | { readonly kind: 'proxied' }
  /** The command runs without the proxy, and the event says why. */
  | { readonly kind: 'unproxied'; readonly reason: 'user_opt_out' | 'unsupported_sandbox_mode' }
  /** The proxy is required but unsupported: nothing runs. Two rows of the specification apply, so two events are recorded. */
  | { readonly kind: 'preflight_failed'; readonly reasons: readonly DisabledReason[] };

/** Decides whether a launch uses the proxy. `auto` means `on` where the proxy is supported. */
export function decideProxy(sandbox: SandboxMode, wanted: SandboxProxy): ProxyDecision {
  if (wanted === 'off') return { kind: 'unproxied', reason: 'user_opt_out' };
  if (sandbox !== 'none') return { kind: 'proxied' };
  if (wanted === 'on') return { kind: 'preflight_failed', reasons: ['unsupported_sandbox_mode', 'preflight_failed'] };
  return { kind: 'unproxied', reason: 'unsupported_sandbox_mode' };
}

/** The value of `--sandbox`. */
export function parseSandboxMode(text: string): Result<SandboxMode, string> {
  const mode = SANDBOX_MODES.find((known) => known === text);
  return mode === undefined ? err(`is ${JSON.stringify(text)}: use docker, podman or none`) : ok(mode);
}
