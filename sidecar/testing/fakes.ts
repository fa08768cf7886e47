import type { InstalledConnector } from '../../shared/model/connector.ts';
import type { AuditEvent } from '../../shared/model/audit_event.ts';
import type { ClientCertificate, CredentialRef, HostBinding } from '../../shared/model/host_binding.ts';
import { refusal, type Refusal, type RefusalReason } from '../../shared/model/refusal.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { Secret } from '../../shared/model/secret.ts';
import { compilePolicy, type Policy } from '../../shared/resolve/resolve.ts';
import type { Clock } from '../../shared/model/clock.ts';
import type { Metrics } from '../../machine/ports.ts';
import type {
  ApprovalRequest,
  ApprovalSource,
  AuditSink,
  CredentialSource,
  NotApproved,
  PolicySource,
  ReleasedCredential,
} from '../ports.ts';

/** A clock that stands still until it is moved. */
export class FakeClock implements Clock {
  #now: number;

  constructor(now = Date.parse('2026-01-02T03:04:05.678Z')) {
    this.#now = now;
  }

  now(): number {
    return this.#now;
  }

  advance(ms: number): void {
    this.#now += ms;
  }
}

/** A given policy, or a refusal. */
export class FakePolicySource implements PolicySource {
  #current: Result<Policy, Refusal>;
  readonly #onChanged = new Set<() => void>();
  readonly #always: (() => void)[] = [];

  constructor(bindings: readonly HostBinding[] = []) {
    this.#current = ok(compilePolicy(bindings));
  }

  current(): Result<Policy, Refusal> {
    return this.#current;
  }

  use(
    bindings: readonly HostBinding[],
    connectors: readonly InstalledConnector[] = [],
    tunnelled: readonly string[] = [],
    certificates: readonly ClientCertificate[] = [],
  ): void {
    this.#change(ok(compilePolicy(bindings, connectors, tunnelled, certificates)));
  }

  refuse(reason: RefusalReason): void {
    this.#change(err(refusal(reason, `refused for the test: ${reason}`)));
  }

  onChanged(listener: () => void): () => void {
    this.#onChanged.add(listener);
    return () => this.#onChanged.delete(listener);
  }

  /** Like {@link onChanged}, for a listener that stays and is not counted. */
  alwaysOnChanged(listener: () => void): void {
    this.#always.push(listener);
  }

  /** The number of waiters for a change. */
  get watched(): number {
    return this.#onChanged.size;
  }

  #change(policy: Result<Policy, Refusal>): void {
    this.#current = policy;
    for (const listener of [...this.#onChanged, ...this.#always]) listener();
  }
}

/** Given credentials. A reference resolves synchronously; in `async` mode through a promise, like a miss. */
export class FakeCredentialSource implements CredentialSource {
  async = false;
  /** Every requested reference, in order. */
  readonly asked: CredentialRef[] = [];
  readonly #values = new Map<string, ReleasedCredential>();
  #refusal: Refusal | null = null;

  set(ref: CredentialRef, value: string, version = '1', hasEnded?: () => boolean): void {
    const end = hasEnded === undefined ? {} : { hasEnded };
    this.#values.set(`${ref.owner} ${ref.path}`, { secret: new Secret(value), version, ...end });
  }

  /** A value that must not be used from `expiresAt` on. */
  setMinted(ref: CredentialRef, value: string, expiresAt: number): void {
    this.#values.set(`${ref.owner} ${ref.path}`, { secret: new Secret(value), version: '1', expiresAt });
  }

  delete(ref: CredentialRef): void {
    this.#values.delete(`${ref.owner} ${ref.path}`);
  }

  refuse(reason: RefusalReason | null): void {
    this.#refusal = reason === null ? null : refusal(reason, `refused for the test: ${reason}`);
  }

  resolve(ref: CredentialRef): Result<ReleasedCredential, Refusal> | Promise<Result<ReleasedCredential, Refusal>> {
    this.asked.push(ref);
    const result = this.#answer(ref);
    return this.async ? Promise.resolve(result) : result;
  }

  isStored(ref: CredentialRef): boolean {
    return this.#values.has(`${ref.owner} ${ref.path}`);
  }

  findStoredVersion(ref: CredentialRef): string | null {
    return this.#values.get(`${ref.owner} ${ref.path}`)?.version ?? null;
  }

  #answer(ref: CredentialRef): Result<ReleasedCredential, Refusal> {
    if (this.#refusal !== null) return err(this.#refusal);
    const value = this.#values.get(`${ref.owner} ${ref.path}`);
    return value === undefined ? err(refusal('credential_unavailable', `no secret vault://${ref.path}`)) : ok(value);
  }
}

/** Approvals that are granted or refused. While it holds, a request waits until `decide`, or until its client disconnects. */
export class FakeApprovalSource implements ApprovalSource {
  readonly asked: ApprovalRequest[] = [];
  decision: 'approved' | 'approval_required' | 'approval_denied' = 'approved';
  holding = false;
  readonly #waiting = new Set<() => void>();

  decide(decision: FakeApprovalSource['decision']): void {
    this.decision = decision;
    this.holding = false;
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  async approve(request: ApprovalRequest, gone: AbortSignal): Promise<Result<string, NotApproved>> {
    this.asked.push(request);
    const approvalId = `apr_${this.asked.length}`;
    if (this.holding) await this.#waitForDecision(gone);
    if (this.decision === 'approved' && !gone.aborted) return ok(approvalId);
    const reason = this.decision === 'approval_denied' ? this.decision : 'approval_required';
    return err({ refusal: refusal(reason, `refused for the test: ${approvalId}`), approvalId });
  }

  #waitForDecision(gone: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.add(resolve);
      gone.addEventListener('abort', () => resolve());
    });
  }
}

/** Keeps the recorded events. `flush` returns `reachable`. */
export class FakeAuditSink implements AuditSink {
  accepting = true;
  exhausted = false;
  reachable = true;
  readonly events: Omit<AuditEvent, 'id' | 'time' | 'sidecar_id'>[] = [];

  record(event: Omit<AuditEvent, 'id' | 'time' | 'sidecar_id'>): string {
    const count = this.events.push(event);
    return `evt_${String(count).padStart(26, '0')}`;
  }

  recordInTurn(event: Omit<AuditEvent, 'id' | 'time' | 'sidecar_id'>): Promise<void> {
    this.record(event);
    return Promise.resolve();
  }

  flush(): Promise<boolean> {
    return Promise.resolve(this.reachable || this.events.length === 0);
  }
}

/** Counts by name and labels: `name{label="value"}`. */
export class FakeMetrics implements Metrics {
  readonly counts = new Map<string, number>();

  increment(name: string, labels: Readonly<Record<string, string>> = {}): void {
    const shown = Object.entries(labels).map(([key, value]) => `${key}="${value}"`);
    const key = shown.length === 0 ? name : `${name}{${shown.join(',')}}`;
    this.counts.set(key, (this.counts.get(key) ?? 0) + 1);
  }
}
