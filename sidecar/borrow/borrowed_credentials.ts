import { fileName } from '../../shared/mcp/dangers/program_names.ts';
import { type BorrowedValue, readBorrowed } from '../../shared/borrow/read_output.ts';
import { type CredentialUse, findUncovered } from '../../shared/borrow/borrow_grant.ts';
import { leftUntil, type Moment, momentAt, readClocks, type TwoClocks } from '../../shared/model/clock.ts';
import type { CredentialRef } from '../../shared/model/host_binding.ts';
import { refusal, type Refusal } from '../../shared/model/refusal.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { formatVaultReference } from '../../shared/model/vault_path.ts';
import type { BorrowConsent } from '../../shared/borrow/borrow_calls.ts';
import { checkCommand, type RunsAs } from '../../machine/borrow/check_files.ts';
import { maskStderr } from '../../machine/borrow/mask_stderr.ts';
import { type ProgramRun, runProgram } from '../../machine/borrow/run_program.ts';
import type { AuditSink, ReleasedCredential } from '../ports.ts';
import type { BorrowConsents } from './borrow_consents.ts';

export interface BorrowedCredentialsOptions extends TwoClocks {
  readonly consents: Pick<BorrowConsents, 'find'>;
  readonly credentialCacheSeconds: number;
  /** How far this machine's clock is known to be behind: the end that a program states is one of its provider's clock. */
  readonly behindMs: () => number;
  /** The environment of every program. */
  readonly environment: () => Readonly<Record<string, string>>;
  readonly runsAs: RunsAs;
  readonly record: AuditSink['record'];
  readonly run?: typeof runProgram;
}

type Resolved = Result<ReleasedCredential, Refusal>;

/** What a program gave, or why it gave nothing. */
interface Held {
  readonly hash: string;
  readonly version: string;
  readonly resolved: Resolved;
  readonly goodUntil: Moment;
  /** From this time on a use also runs the program again. */
  refreshAt: number;
}

/** For the person at this machine. */
export interface BorrowFailure {
  readonly message: string;
  readonly stderr: string | null;
  readonly at: number;
}

/** The longest time that a value is used without asking again. */
const LONGEST_SECONDS = 300;
/** A program that failed is not started again before. Nobody who sends requests can keep the machine busy with it. */
const FAILED_MS = 5_000;
const TIMEOUT_MS = 30_000;
const MAX_OUTPUT_BYTES = 128 * 1024;
const REFRESH_FRACTION = 0.8;

/**
 * The values that programs of this machine give, in memory only. A program runs only by a consent that was given here, and its
 * value serves only requests that the consent covers. Concurrent requests share one run. A value is used until the end that its
 * program states, and at most five minutes; a failed run has no value at all.
 */
export class BorrowedCredentials {
  readonly #options: BorrowedCredentialsOptions;
  readonly #held = new Map<string, Held>();
  readonly #running = new Map<
    string,
    { readonly hash: string; readonly version: string; readonly done: Promise<Resolved> }
  >();
  readonly #failures = new Map<string, BorrowFailure>();
  #versions: ReadonlyMap<string, string> = new Map();
  readonly #stop = new AbortController();
  #runs = 0;

  constructor(options: BorrowedCredentialsOptions) {
    this.#options = options;
  }

  /** The secrets that the control plane lists as borrowed, with the versions of their records. Every other value is dropped. */
  useVersions(secrets: readonly (CredentialRef & { readonly version: string })[]): void {
    this.#versions = new Map(secrets.map((secret) => [keyOf(secret), secret.version]));
    for (const [key, held] of this.#held) if (this.#versions.get(key) !== held.version) this.#held.delete(key);
  }

  includes(ref: CredentialRef): boolean {
    return this.#versions.has(keyOf(ref));
  }

  /** Refuses with `borrow_not_consented`, and with `credential_unavailable` if the program gives no value. */
  resolve(ref: CredentialRef, use: CredentialUse | null): Resolved | Promise<Resolved> {
    const consent = this.#options.consents.find(ref);
    const refused = refuseUse(ref, consent, use);
    if (refused !== null || consent === null) return err(refused ?? noConsent(ref));
    const held = this.#held.get(keyOf(ref));
    if (held !== undefined && this.#isGood(held, consent, ref)) {
      if (this.#options.clock.now() >= held.refreshAt) {
        held.refreshAt = Number.POSITIVE_INFINITY;
        void this.#start(ref, consent);
      }
      return held.resolved;
    }
    return this.#start(ref, consent);
  }

  /** Runs the program now, whatever is held, for the person at this machine. */
  async test(
    ref: CredentialRef,
  ): Promise<Result<{ readonly value: BorrowedValue; readonly until: number }, BorrowFailure>> {
    const consent = this.#options.consents.find(ref);
    if (consent === null) return err({ message: noConsent(ref).message, stderr: null, at: this.#options.clock.now() });
    return this.#ask(consent);
  }

  /** Until when the value that is held is used; null if none is. */
  heldUntil(ref: CredentialRef): number | null {
    const held = this.#held.get(keyOf(ref));
    const isValue = held?.resolved.ok === true && leftUntil(held.goodUntil, this.#options) > 0;
    return isValue ? held.goodUntil.wall : null;
  }

  failureOf(ref: CredentialRef): BorrowFailure | null {
    return this.#failures.get(keyOf(ref)) ?? null;
  }

  drop(ref: CredentialRef): void {
    this.#held.delete(keyOf(ref));
    this.#failures.delete(keyOf(ref));
  }

  /** Kills what runs. */
  stop(): void {
    this.#stop.abort();
    this.#held.clear();
  }

  #isGood(held: Held, consent: BorrowConsent, ref: CredentialRef): boolean {
    const isSame = held.hash === consent.hash && held.version === this.#versions.get(keyOf(ref));
    return isSame && leftUntil(held.goodUntil, this.#options) > 0;
  }

  /** A run for another consent or another version of the record is not shared. */
  #start(ref: CredentialRef, consent: BorrowConsent): Promise<Resolved> {
    const key = keyOf(ref);
    const version = this.#versions.get(key) ?? '';
    const running = this.#running.get(key);
    if (running !== undefined && running.hash === consent.hash && running.version === version) return running.done;
    const done = this.#fetch(ref, consent, version).finally(() => {
      if (this.#running.get(key)?.done === done) this.#running.delete(key);
    });
    this.#running.set(key, { hash: consent.hash, version, done });
    return done;
  }

  async #fetch(ref: CredentialRef, consent: BorrowConsent, version: string): Promise<Resolved> {
    const { consents, record } = this.#options;
    const start = readClocks(this.#options);
    const asked = await this.#ask(consent);
    // Both may have changed while the program ran.
    if (consents.find(ref)?.hash !== consent.hash || this.#versions.get(keyOf(ref)) !== version)
      return err(changed(ref));
    this.#runs += 1;
    const { program } = consent.grant;
    const about = {
      'svc.proxy.credential_ref': formatVaultReference(ref.path),
      'svc.borrow.program': fileName(program),
    };
    const event = { session_id: null, actor: null };
    if (!asked.ok) {
      const resolved = err(refusal('credential_unavailable', failureText(ref, asked.error)));
      this.#failures.set(keyOf(ref), asked.error);
      record({
        ...event,
        type: 'sandbox.proxy.borrow_failed',
        data: { ...about, 'svc.proxy.reason': asked.error.message },
      });
      const now = readClocks(this.#options);
      this.#keep(ref, { hash: consent.hash, version, resolved }, momentAt(now.wall + FAILED_MS, now));
      return resolved;
    }
    const { secret, signedAs, expiresAtMs } = asked.value.value;
    const until = momentAt(asked.value.until, start);
    if (leftUntil(until, this.#options) <= 0) return err(endedMeanwhile(ref));
    const end = expiresAtMs === null ? {} : this.#endOf(expiresAtMs, start);
    const resolved = ok({ secret, version: `${version}#${this.#runs}`, ...end, ...(signedAs && { signedAs }) });
    this.#failures.delete(keyOf(ref));
    record({
      ...event,
      type: 'sandbox.proxy.credential_borrowed',
      data: { ...about, 'svc.borrow.until': new Date(until.wall).toISOString() },
    });
    this.#keep(ref, { hash: consent.hash, version, resolved }, until);
    return resolved;
  }

  /** The end that a program stated. `start`: before its run. */
  #endOf(expiresAt: number, start: Moment): Pick<ReleasedCredential, 'expiresAt' | 'hasEnded'> {
    const end = momentAt(expiresAt, start);
    return { expiresAt, hasEnded: () => leftUntil(end, this.#options) <= 0 };
  }

  #keep(ref: CredentialRef, what: Pick<Held, 'hash' | 'version' | 'resolved'>, goodUntil: Moment): void {
    const key = keyOf(ref);
    const now = this.#options.clock.now();
    const held = this.#held.get(key);
    // A run ahead of need that failed leaves the value that is still good, and is repeated at its end.
    const isSame = held?.hash === what.hash && held.version === what.version;
    if (!what.resolved.ok && held?.resolved.ok === true && isSame && leftUntil(held.goodUntil, this.#options) > 0)
      return;
    const refreshAt = what.resolved.ok ? now + (goodUntil.wall - now) * REFRESH_FRACTION : Number.POSITIVE_INFINITY;
    this.#held.set(key, { ...what, goodUntil, refreshAt });
  }

  /** Runs the program of a consent, if its files are still what was consented to. */
  async #ask({
    grant,
  }: BorrowConsent): Promise<Result<{ readonly value: BorrowedValue; readonly until: number }, BorrowFailure>> {
    const { clock, behindMs, runsAs, environment, run = runProgram, credentialCacheSeconds } = this.#options;
    const name = fileName(grant.program);
    const fail = (message: string, stderr: string | null = null) => err({ message, stderr, at: clock.now() });
    const files = await checkCommand(grant.program, grant.args, runsAs);
    if (!files.ok)
      return fail(`${name} was not started: its file, or one that it runs, cannot be trusted or read now`, files.error);
    if (JSON.stringify(files.value) !== JSON.stringify(grant.files)) {
      return fail(`${name} was not started: its file, or one that it runs, has changed since the consent`);
    }
    const startedAt = clock.now();
    const wanted: ProgramRun = {
      program: grant.program,
      args: grant.args,
      env: { ...environment(), ...grant.env },
      timeoutMs: TIMEOUT_MS,
      maxBytes: MAX_OUTPUT_BYTES,
    };
    const output = await run(wanted, this.#stop.signal);
    if (!output.ok) return fail(`${name} ${output.error.message}`, maskStderr(output.error.stderr));
    const text = decode(output.value);
    const read = text === null ? err('is not UTF-8') : readBorrowed(grant.output, text, startedAt);
    if (!read.ok) return fail(`the output of ${name} ${read.error}`);
    const lifeMs = Math.min(LONGEST_SECONDS, credentialCacheSeconds) * 1000;
    const end = read.value.expiresAtMs === null ? null : read.value.expiresAtMs - behindMs();
    const until = Math.min(startedAt + lifeMs, end ?? Number.POSITIVE_INFINITY);
    if (until <= clock.now()) return fail(`${name} gave a value that has already ended`);
    return ok({ value: { ...read.value, expiresAtMs: end }, until });
  }
}

function decode(bytes: Buffer): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}

function keyOf({ owner, path }: CredentialRef): string {
  return `${owner} ${path}`;
}

/** Why a use gets no value, before anything runs; null if it may. */
function refuseUse(ref: CredentialRef, consent: BorrowConsent | null, use: CredentialUse | null): Refusal | null {
  if (consent === null) return noConsent(ref);
  const reference = formatVaultReference(ref.path);
  if (use === null) {
    return refusal(
      'borrow_not_consented',
      `${reference} is borrowed on this machine: only requests of bindings and connectors can use it.`,
    );
  }
  const uncovered = findUncovered(consent.grant, use);
  if (uncovered === null) return null;
  const fix = `If that is right, consent to it on this machine: svc secret borrow add ${ref.path}`;
  return refusal('borrow_not_consented', `The consent to borrow ${reference} ${uncovered}. ${fix}`);
}

function noConsent({ path }: CredentialRef): Refusal {
  const message = `${formatVaultReference(path)} is borrowed, and nobody on this machine has consented to a program that gives it. Do so with: svc secret borrow add ${path}`;
  return refusal('borrow_not_consented', message);
}

function changed({ path }: CredentialRef): Refusal {
  return refusal(
    'credential_unavailable',
    `${formatVaultReference(path)} was changed while its program ran; send the request again.`,
  );
}

function endedMeanwhile({ path }: CredentialRef): Refusal {
  const message = `the value of ${formatVaultReference(path)} ended before its program did; send the request again.`;
  return refusal('credential_unavailable', message);
}

/** What an agent may read: nothing that the program wrote is in it. */
function failureText({ path }: CredentialRef, { message }: BorrowFailure): string {
  return `No value for ${formatVaultReference(path)}: ${message}. See it on this machine with: svc secret borrow test ${path}`;
}
