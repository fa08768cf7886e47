import { REVIEWED_KINDS } from '../../shared/model/mcp_tool.ts';
import { SECRET_FOR_A_NEWER_SIDECAR } from '../../shared/model/request_limits.ts';
import { SET_FOR_A_NEWER_SIDECAR } from '../../shared/model/region_set.ts';
import type { HostBinding } from '../../shared/model/host_binding.ts';
import { refusal, type Refusal } from '../../shared/model/refusal.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { compilePolicy, type Policy } from '../../shared/resolve/resolve.ts';
import { leftUntil, type Moment, momentAt, readClocks, type TwoClocks } from '../../shared/model/clock.ts';
import type { PolicySource } from '../ports.ts';
import { EXPIRED, NONE_YET, REVOKED } from './no_policy.ts';
import { channelFailure, unavailableRefusal, type ChannelFailure } from './channel_failure.ts';
import { MAX_CALL_SECONDS } from '../../shared/wire/channel.ts';
import type { SnapshotMcpServer, UnreadableMcpServer } from '../../shared/wire/mcp/mcp_servers.ts';
import type { ControlChannel, CredentialVersion, SnapshotReply, VerifiedSnapshot } from './control_channel.ts';
import type { Link } from './link.ts';
import { Pacer } from '../spool/pacer.ts';
import type { SnapshotFile } from './snapshot_file.ts';
import { Waiters } from './waiters.ts';

interface SnapshotSourceOptions extends TwoClocks {
  readonly channel: ControlChannel;
  readonly link: Link;
  readonly file: SnapshotFile;
  readonly snapshotMaxAgeSeconds: number;
  /** The longest pause between two attempts while the control plane is down. */
  readonly maxBackoffMs?: number;
  readonly random?: () => number;
}

interface Held {
  readonly snapshot: VerifiedSnapshot;
  readonly policy: Result<Policy, Refusal>;
  /** When the control plane last confirmed that this is the newest version; milliseconds since the epoch. */
  readonly confirmedAt: number;
  readonly goodUntil: Moment;
}

/** Errors that a waiting caller cannot outwait. */
const HOPELESS: ReadonlySet<string> = new Set(['revoked', 'clock_skew', 'untrusted_certificate']);
/** A poll is held only once the control plane is known to answer: the first answer shows that it is up. */
const LONG_POLL_SECONDS = 25;
const RECHECK_MS = 250;
const IDLE_POLL_MS = 1_000;

/**
 * The current policy, kept up to date by a long poll. A version never goes back. A policy is used for
 * `snapshotMaxAgeSeconds` after the control plane last confirmed it, and not at all while this sidecar is revoked.
 */
export class SnapshotSource implements PolicySource {
  readonly #options: SnapshotSourceOptions;
  readonly #pacer: Pacer;
  readonly #stopped = new AbortController();
  readonly #listeners = new Set<(credentials: readonly CredentialVersion[]) => void>();
  readonly #onChanged = new Set<() => void>();
  readonly #waiters = new Waiters();
  #held: Held | null = null;
  /** The stored snapshot may be from an earlier version, which did not get everything that this one reads: it is fetched again. */
  #isRenewalDue = false;
  #behindMs = 0;
  #loop: Promise<void> | null = null;

  constructor(options: SnapshotSourceOptions) {
    this.#options = options;
    this.#pacer = new Pacer({
      baseMs: 100,
      maxMs: options.maxBackoffMs ?? 5_000,
      random: options.random ?? Math.random,
    });
    options.link.onUp(() => this.#pacer.wake());
    options.link.onRevoked(() => this.#notify([]));
  }

  current(): Result<Policy, Refusal> {
    const held = this.#held;
    if (this.#options.link.state === 'revoked') return REVOKED;
    if (held === null) return NONE_YET;
    return this.#isGood(held) ? held.policy : EXPIRED;
  }

  /** Every binding of the current policy; [] if no policy may be used. */
  bindings(): readonly HostBinding[] {
    return this.current().ok ? (this.#held?.snapshot.hostBindings ?? []) : [];
  }

  /**
   * The MCP servers of the current policy. Empty if the policy may no longer be used, so that running servers are stopped.
   * Null before the first policy, which says nothing about what runs.
   */
  mcpServers(): readonly SnapshotMcpServer[] | null {
    if (this.#options.link.state === 'revoked') return [];
    const held = this.#held;
    if (held === null) return null;
    return this.#isGood(held) ? held.snapshot.mcpServers : [];
  }

  /** The hashes of the tools of a server that may be listed and called; null if the control plane does not keep them. */
  reviewedTools(serverId: string): readonly string[] | null {
    const reviewed = this.#held?.snapshot.reviewedTools ?? null;
    return reviewed === null ? null : (reviewed.get(serverId) ?? []);
  }

  /** The kinds of what {@link reviewedTools} has. */
  reviewedKinds(): readonly string[] {
    return this.#held?.snapshot.reviewedKinds ?? ['tool'];
  }

  /** The servers that this version cannot use. */
  listUnreadableMcpServers(): readonly UnreadableMcpServer[] {
    return this.#held?.snapshot.unreadableMcpServers ?? [];
  }

  /** The policy's part of `/v1/health`. */
  status(): { readonly version: number; readonly ageSeconds: number } | null {
    if (this.#held === null) return null;
    const ageMs = Math.max(0, this.#options.clock.now() - this.#held.confirmedAt);
    return { version: this.#held.snapshot.version, ageSeconds: Math.floor(ageMs / 1000) };
  }

  /** How far this machine's clock was behind the control plane's at its last reply, at least; 0 if it was not. */
  get behindMs(): number {
    return this.#behindMs;
  }

  /** Calls `listener` with the references and versions of each new snapshot, and with an empty list when this sidecar is revoked. */
  onCredentials(listener: (credentials: readonly CredentialVersion[]) => void): void {
    this.#listeners.add(listener);
  }

  onChanged(listener: () => void): () => void {
    this.#onChanged.add(listener);
    return () => this.#onChanged.delete(listener);
  }

  /** Loads the policy of an earlier run, then polls until {@link stop}. */
  async start(): Promise<void> {
    await this.#restore();
    this.#loop = this.#pollUntilStopped();
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    this.#pacer.wake();
    await this.#loop;
  }

  /**
   * Waits until the policy has at least version `minVersion`, and asks the control plane at once instead of at the next
   * poll. Refuses after `timeoutMs`, or if waiting cannot help.
   */
  async waitForVersion(minVersion: number, timeoutMs: number): Promise<Result<number, Refusal>> {
    const deadline = new AbortController();
    const timer = setTimeout(() => deadline.abort(), timeoutMs);
    const signal = AbortSignal.any([deadline.signal, this.#stopped.signal]);
    try {
      while (!signal.aborted) {
        const version = this.#usableVersion();
        if (version !== null && version >= minVersion) return ok(version);
        const polled = await this.#poll(0, signal);
        if (!polled.ok && HOPELESS.has(polled.error.reason)) break;
        if ((this.#usableVersion() ?? -1) < minVersion) await this.#waiters.wait(RECHECK_MS, signal);
      }
      return err(this.#notReached(minVersion));
    } finally {
      clearTimeout(timer);
    }
  }

  /** Waits for a policy of another version than this one, until `timeoutMs` have passed or `signal` is aborted. */
  async waitForChange(version: number | null, timeoutMs: number, signal: AbortSignal): Promise<void> {
    if ((this.#held?.snapshot.version ?? null) !== version) return;
    await this.#waiters.wait(timeoutMs, AbortSignal.any([signal, this.#stopped.signal]));
  }

  #isGood({ goodUntil }: Held): boolean {
    return leftUntil(goodUntil, this.#options) > 0;
  }

  #usableVersion(): number | null {
    return this.current().ok ? (this.#held?.snapshot.version ?? null) : null;
  }

  #notReached(minVersion: number): Refusal {
    const current = this.current();
    const cause = this.#options.link.lastError;
    if (cause !== null) return unavailableRefusal(cause);
    if (!current.ok) return current.error;
    return refusal(
      'control_plane_unavailable',
      `The control plane has not sent policy version ${minVersion} yet; this sidecar has version ${this.#held?.snapshot.version ?? 0}. Try again.`,
    );
  }

  async #pollUntilStopped(): Promise<void> {
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      const startedAt = performance.now();
      const known = this.#options.link.state === 'up';
      const polled = await this.#poll(known ? LONG_POLL_SECONDS : 0, signal);
      if (signal.aborted) return;
      if (!polled.ok) await this.#pacer.backOff();
      else {
        this.#pacer.noteSuccess();
        const answeredAtOnce = performance.now() - startedAt < RECHECK_MS;
        if (known && polled.value === 'unchanged' && answeredAtOnce) await this.#pacer.wait(IDLE_POLL_MS);
      }
    }
  }

  async #poll(waitSeconds: number, signal: AbortSignal): Promise<Result<SnapshotReply['kind'], ChannelFailure>> {
    const held = this.#held?.snapshot.version ?? null;
    const heldVersion = this.#isRenewalDue ? null : held;
    const reply = await this.#options.channel.snapshot({ waitSeconds, heldVersion, signal });
    if (!reply.ok) return reply;
    const taken = this.#take(reply.value, held ?? 0);
    if (reply.value.kind === 'snapshot') this.#isRenewalDue = false;
    return taken.ok ? ok(reply.value.kind) : taken;
  }

  /** A reply that a faster poll has overtaken is dropped. One that is older than the snapshot held when the poll started is refused. */
  #take(reply: SnapshotReply, askedWith: number): Result<void, ChannelFailure> {
    const { version, issuedAt } = reply.kind === 'snapshot' ? reply.snapshot : reply.confirmation;
    this.#behindMs = Math.max(0, issuedAt - this.#options.clock.now());
    const held = this.#held?.snapshot.version ?? 0;
    if (version < askedWith) return this.#refuseOlder(version, askedWith);
    if (version < held) return ok(undefined);
    if (reply.kind === 'snapshot') this.#install(reply.snapshot, reply.snapshot.issuedAt);
    else if (version === held) this.#confirm(reply.confirmation.issuedAt);
    this.#options.file.keep(reply);
    return ok(undefined);
  }

  #refuseOlder(version: number, held: number): Result<never, ChannelFailure> {
    const error = channelFailure(
      'version_went_back',
      `The control plane sent policy version ${version}, but this sidecar has already seen version ${held}, so the older one is refused. If the control plane's database was restored from a backup, enrol this sidecar again.`,
    );
    this.#options.link.markDown(error);
    return err(error);
  }

  #install(snapshot: VerifiedSnapshot, confirmedAt: number): void {
    if (this.#held?.snapshot.version === snapshot.version && !this.#isRenewalDue) {
      this.#confirm(confirmedAt);
      return;
    }
    this.#held = this.#toHeld(snapshot, policyOf(snapshot), confirmedAt);
    this.#notify(snapshot.credentials);
    this.#waiters.wake();
  }

  /** A confirmation that a later one has overtaken changes nothing. If the clock was set back since, no time tells which is later. */
  #confirm(confirmedAt: number): void {
    const held = this.#held;
    if (held === null) return;
    const isClockSetBack = this.#options.clock.now() < held.confirmedAt;
    if (confirmedAt <= held.confirmedAt && !isClockSetBack) return;
    this.#held = this.#toHeld(held.snapshot, held.policy, confirmedAt);
  }

  #toHeld(snapshot: VerifiedSnapshot, policy: Result<Policy, Refusal>, issuedAt: number): Held {
    const now = readClocks(this.#options);
    const confirmedAt = Math.min(issuedAt, now.wall);
    const lifetimeMs = Math.min(this.#options.snapshotMaxAgeSeconds * 1000, snapshot.expiresAt - snapshot.issuedAt);
    return { snapshot, policy, confirmedAt, goodUntil: momentAt(confirmedAt + lifetimeMs, now) };
  }

  /** If the clock was set back since, nobody knows how old a stored policy is: it is taken for one that may no longer be used. */
  #ageOfStored(confirmedAt: number): number {
    const now = this.#options.clock.now();
    return confirmedAt <= now + MAX_CALL_SECONDS * 1000
      ? confirmedAt
      : now - this.#options.snapshotMaxAgeSeconds * 1000;
  }

  #notify(credentials: readonly CredentialVersion[]): void {
    for (const listener of this.#listeners) listener(credentials);
    for (const listener of this.#onChanged) listener();
  }

  async #restore(): Promise<void> {
    const stored = await this.#options.file.load(this.#options.channel);
    if (stored === null) return;
    this.#install(stored.snapshot, this.#ageOfStored(stored.confirmedAt));
    const { reviewedTools, reviewedKinds, mcpServers, hostBindings } = stored.snapshot;
    const isKept = REVIEWED_KINDS.every((kind) => reviewedKinds.includes(kind));
    this.#isRenewalDue =
      reviewedTools === null || (mcpServers.length > 0 && !isKept) || hostBindings.some(isForAnotherVersion);
  }
}

/** Whether an earlier version of this sidecar could not read it. */
function isForAnotherVersion({ injection, credential }: HostBinding): boolean {
  const hasNoRegions = injection.scheme === 'sigv4-resign' && injection.region === SET_FOR_A_NEWER_SIDECAR;
  return hasNoRegions || credential.path === SECRET_FOR_A_NEWER_SIDECAR;
}

/** An unreadable connector refuses every request: a request that belongs to it could otherwise fall through to a binding or to passthrough. */
function policyOf({ hostBindings, connectors, tunnelHosts, certificates }: VerifiedSnapshot): Result<Policy, Refusal> {
  if (connectors.ok) return ok(compilePolicy(hostBindings, connectors.value, tunnelHosts, certificates));
  const message = `The installed connectors cannot be read, so no request is sent: ${connectors.error}. Update svc on this machine, or install the connector again.`;
  return err(refusal('connector_specs_invalid', message));
}
