import type { ClientCertificate } from '../../shared/model/host_binding.ts';
import { z } from 'zod';
import { type CredentialRef, type HostBinding, OWNERS } from '../../shared/model/host_binding.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { Secret } from '../../shared/model/secret.ts';
import { channelFailure, type ChannelFailure, type ChannelFailureReason } from '../control/channel_failure.ts';
import type {
  ApprovalAnswer,
  ApprovalCall,
  ApprovalWait,
  SealedView,
  AuditHeads,
  ControlChannel,
  CredentialsReply,
  EventsOutcome,
  OpenLogin,
  SnapshotConfirmation,
  SnapshotReply,
  SnapshotRequest,
  UnsealedRequest,
  VerifiedSnapshot,
} from '../control/control_channel.ts';
import type { AuditHead } from '../../shared/wire/audit_heads.ts';
import type { McpHealthReport } from '../../shared/wire/mcp/mcp_servers.ts';
import type { Link } from '../control/link.ts';
import type { Clock } from '../../shared/model/clock.ts';

/** A snapshot's validity period, as the control plane sets it. */
const SNAPSHOT_LIFETIME_MS = 24 * 3600 * 1000;

/**
 * A channel without a network: the test acts as the control plane. While `down` is set every call fails with it; `hold`
 * keeps calls pending until `release`.
 */
export class ScriptedChannel implements ControlChannel {
  version = 1;
  hostBindings: readonly HostBinding[] = [];
  connectors: VerifiedSnapshot['connectors'] = ok([]);
  mcpServers: VerifiedSnapshot['mcpServers'] = [];
  readonly healthReports: McpHealthReport[] = [];
  readonly secrets = new Map<
    string,
    { readonly value: string; readonly version: string; readonly expiresAt?: number }
  >();
  /** Answers references without an access token. */
  unavailable: CredentialsReply['unavailable'] = [];
  /** Answers to approval calls, in order; the last one repeats. */
  approvals: Result<ApprovalAnswer, ChannelFailure>[] = [];
  readonly approvalCalls: (ApprovalCall | ApprovalWait)[] = [];
  down: ChannelFailureReason | null = null;
  /** Answers `sendEvents`; by default everything is accepted. */
  takeEvents: ((events: readonly string[]) => Result<EventsOutcome, ChannelFailure>) | null = null;
  readonly polls: SnapshotRequest[] = [];
  readonly asked: (readonly CredentialRef[])[] = [];
  readonly sent: (readonly string[])[] = [];
  /** Ids in the log, with the number of times they arrived. */
  readonly log = new Map<string, number>();
  readonly #clock: Clock;
  readonly #link: Link;
  #holding = false;
  readonly #held = new Set<() => void>();

  constructor(clock: Clock, link: Link) {
    this.#clock = clock;
    this.#link = link;
  }

  /** From now on calls wait for {@link release}, except a poll that has news. */
  hold(): void {
    this.#holding = true;
  }

  release(): void {
    this.#holding = false;
    for (const go of this.#held) go();
    this.#held.clear();
  }

  setSecret(ref: CredentialRef, value: string, version: string, expiresAt?: number): void {
    const stored = expiresAt === undefined ? { value, version } : { value, version, expiresAt };
    this.secrets.set(`${ref.owner} ${ref.path}`, stored);
  }

  requestApproval(call: ApprovalCall): Promise<Result<ApprovalAnswer, ChannelFailure>> {
    return this.#approvalAnswer(call);
  }

  awaitApproval(wait: ApprovalWait): Promise<Result<ApprovalAnswer, ChannelFailure>> {
    return this.#approvalAnswer(wait);
  }

  readonly sentViews: SealedView[] = [];

  sendView(view: SealedView): Promise<Result<void, ChannelFailure>> {
    this.sentViews.push(view);
    return Promise.resolve(ok(undefined));
  }

  async #approvalAnswer(call: ApprovalCall | ApprovalWait): Promise<Result<ApprovalAnswer, ChannelFailure>> {
    this.approvalCalls.push(call);
    const [answer] = this.approvals.length > 1 ? this.approvals.splice(0, 1) : this.approvals;
    if (this.#holding && 'signal' in call) await this.#pause(call.signal);
    return this.#report(() => answer ?? err(channelFailure('refused', 'no answer was given to the test')));
  }

  async snapshot(request: SnapshotRequest): Promise<Result<SnapshotReply, ChannelFailure>> {
    this.polls.push(request);
    if (this.down === null && request.waitSeconds > 0 && request.heldVersion === this.version) {
      await this.#pause(request.signal);
    }
    if (request.signal.aborted) return err(channelFailure('aborted', 'given up'));
    return this.#report(() => this.#snapshotReply(request.heldVersion));
  }

  async credentials(refs: readonly CredentialRef[]): Promise<Result<CredentialsReply, ChannelFailure>> {
    this.asked.push(refs);
    const answer = this.#credentialsReply(refs);
    if (this.#holding) await this.#pause();
    return this.#report(() => answer);
  }

  fetchUnsealed({ path }: UnsealedRequest): Promise<Result<CredentialsReply, ChannelFailure>> {
    return Promise.resolve(this.#report(() => this.#credentialsReply([{ owner: 'personal', path }])));
  }

  reportMcpHealth(report: McpHealthReport): Promise<Result<void, ChannelFailure>> {
    return Promise.resolve(
      this.#report(() => {
        this.healthReports.push(report);
        return ok(undefined);
      }),
    );
  }

  /** Null: a control plane that keeps nothing about tools. */
  reviewedTools: ReadonlyMap<string, readonly string[]> | null = new Map();

  reportMcpTools(): Promise<Result<number, ChannelFailure>> {
    return Promise.resolve(ok(this.version));
  }

  /** The control plane's reply about its audit log; null for an older control plane. */
  auditAnswer: ((known: readonly AuditHead[]) => Result<AuditHeads, ChannelFailure>) | null = null;

  auditHeads(known: readonly AuditHead[]): Promise<Result<AuditHeads, ChannelFailure>> {
    return Promise.resolve(this.auditAnswer?.(known) ?? err(channelFailure('refused', 'not known here')));
  }

  /** The login that is open; null if there is none. */
  openLogin: OpenLogin | null = null;
  /** Answers `holdLogin`; by default the tokens are stored. */
  takeLogin: () => Result<void, ChannelFailure> = () => ok(undefined);

  async fetchLogin(id: string): Promise<Result<OpenLogin, ChannelFailure>> {
    if (this.down !== null) return err(channelFailure(this.down, 'down for the test'));
    if (this.openLogin?.id === id) return ok(this.openLogin);
    return err(channelFailure('refused', 'there is none', { status: 404, code: 'not_found' }));
  }

  async holdLogin(): Promise<Result<void, ChannelFailure>> {
    return this.takeLogin();
  }

  async sendEvents(events: readonly string[]): Promise<Result<EventsOutcome, ChannelFailure>> {
    this.sent.push(events);
    if (this.#holding) await this.#pause();
    return this.#report(() => {
      const outcome = this.takeEvents?.(events) ?? ok({ accepted: events.map(idOf), rejected: [] });
      for (const id of outcome.ok ? outcome.value.accepted : []) this.log.set(id, (this.log.get(id) ?? 0) + 1);
      return outcome;
    });
  }

  verifyStored(jws: string): Promise<Result<VerifiedSnapshot, ChannelFailure>> {
    return Promise.resolve(parsePayload(jws, snapshot));
  }

  verifyStoredConfirmation(jws: string): Promise<Result<SnapshotConfirmation, ChannelFailure>> {
    return Promise.resolve(parsePayload(jws, confirmation));
  }

  #report<T>(answer: () => Result<T, ChannelFailure>): Result<T, ChannelFailure> {
    const result = this.down === null ? answer() : err(channelFailure(this.down, `down for the test: ${this.down}`));
    if (result.ok) this.#link.markUp();
    else this.#link.markDown(result.error);
    return result;
  }

  #snapshotReply(heldVersion: number | null): Result<SnapshotReply, ChannelFailure> {
    const issuedAt = this.#clock.now();
    const facts = { version: this.version, issuedAt };
    if (heldVersion === this.version) {
      return ok({ kind: 'unchanged', confirmation: facts, jws: JSON.stringify(facts) });
    }
    const credentials = [...this.secrets].map(([key, { version }]) => ({ ...refOf(key), version }));
    const expiresAt = issuedAt + SNAPSHOT_LIFETIME_MS;
    const { hostBindings, connectors, mcpServers, reviewedTools } = this;
    const kept = { reviewedTools, reviewedKinds: ['tool', 'prompt', 'instructions'] };
    const policy = {
      hostBindings,
      connectors,
      tunnelHosts: [],
      certificates: [],
      mcpServers,
      ...kept,
      unreadableMcpServers: [],
    };
    const issued = { ...facts, expiresAt, ...policy, credentials };
    return ok({ kind: 'snapshot', snapshot: issued, jws: JSON.stringify(issued) });
  }

  #credentialsReply(refs: readonly CredentialRef[]): Result<CredentialsReply, ChannelFailure> {
    const findSecret = (ref: CredentialRef): { value: string; version: string } | undefined =>
      this.secrets.get(`${ref.owner} ${ref.path}`);
    const released = refs.flatMap((ref) => {
      const secret = findSecret(ref);
      if (secret === undefined) return [];
      const { value, ...rest } = secret;
      return [{ ref, credential: { secret: new Secret(value), ...rest } }];
    });
    const { unavailable } = this;
    const isKnown = (ref: CredentialRef): boolean =>
      findSecret(ref) !== undefined || unavailable.some((other) => other.ref.path === ref.path);
    return ok({ released, missing: refs.filter((ref) => !isKnown(ref)), unavailable });
  }

  #pause(signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.#held.add(resolve);
      signal?.addEventListener('abort', () => resolve());
    });
  }
}

const withId = z.object({ id: z.string() });
const confirmation = z.object({ version: z.number(), issuedAt: z.number() });
const snapshot = confirmation.extend({
  expiresAt: z.number(),
  hostBindings: z.array(z.custom<HostBinding>()),
  connectors: z.custom<VerifiedSnapshot['connectors']>(),
  tunnelHosts: z.array(z.string()),
  certificates: z.array(z.custom<ClientCertificate>()).default([]),
  mcpServers: z.custom<VerifiedSnapshot['mcpServers']>(),
  reviewedTools: z.unknown().transform((stored) => (stored === null ? null : new Map<string, readonly string[]>())),
  reviewedKinds: z.array(z.string()),
  unreadableMcpServers: z.custom<VerifiedSnapshot['unreadableMcpServers']>(),
  credentials: z.array(z.object({ owner: z.enum(OWNERS), path: z.string(), version: z.string() })),
});

/** The id in an event's JSON text. */
export function idOf(event: string): string {
  return withId.parse(JSON.parse(event)).id;
}

function refOf(key: string): CredentialRef {
  const [owner, path = ''] = key.split(' ');
  return { owner: owner === 'enterprise' ? 'enterprise' : 'personal', path };
}

function parsePayload<T extends z.ZodType>(jws: string, schema: T): Result<z.output<T>, ChannelFailure> {
  try {
    return ok(schema.parse(JSON.parse(jws)));
  } catch {
    return err(channelFailure('invalid_reply', 'not what was signed'));
  }
}
