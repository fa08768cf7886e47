import type { AuditEvent } from '../shared/model/audit_event.ts';
import type { CredentialRef } from '../shared/model/host_binding.ts';
import type { Refusal } from '../shared/model/refusal.ts';
import type { Result } from '../shared/model/result.ts';
import type { Secret } from '../shared/model/secret.ts';
import type { Policy } from '../shared/resolve/resolve.ts';

/** Wall-clock time; tests pass a clock they move. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}

/** The policy in force. Refuses (`control_plane_unavailable`, `snapshot_expired`) when there is none that may be used. */
export interface PolicySource {
  current(): Result<Policy, Refusal>;
}

/** A credential as the control plane released it. */
export interface ReleasedCredential {
  readonly secret: Secret;
  /** Changes with every stored value, so that whatever was derived from the value can be cached under it. */
  readonly version: string;
}

/**
 * Credentials by reference, cached in memory only. A hit answers at once; a miss asks the control plane.
 * Refuses with `credential_unavailable` or `control_plane_unavailable`.
 */
export interface CredentialSource {
  resolve(
    ref: CredentialRef,
  ): Result<ReleasedCredential, Refusal> | Promise<Result<ReleasedCredential, Refusal>>;
}

/** Where decisions are recorded. `record` has written the event to the spool when it returns; it throws only on a bug. */
export interface AuditSink {
  /** False when the spool is full or cannot be written: credentialed requests are refused then (503 `audit_unavailable`). */
  readonly accepting: boolean;
  record(event: Omit<AuditEvent, 'id' | 'time' | 'sidecar_id'>): void;
  /** Resolves when every event recorded so far was accepted by the control plane, or `timeoutMs` has passed (then false). */
  flush(timeoutMs: number): Promise<boolean>;
}

/** Counters for `/metrics`; names as Prometheus writes them. */
export interface Metrics {
  increment(name: string, labels?: Readonly<Record<string, string>>): void;
}
