import type { UnstampedEvent } from '../../shared/audit/exchange_event.ts';
import type { Refusal } from '../../shared/model/refusal.ts';
import { refusal } from '../../shared/model/refusal.ts';
import type { PausedUse } from '../session/sandbox.ts';

/** A binding or a connector's host, in one session. */
interface MaskedUse {
  readonly sessionId: string;
  /** The binding's id. */
  readonly binding: string;
  readonly host: string;
}

/** How often replies contained the credential. */
interface MaskedCount {
  readonly host: string;
  readonly maskedReplies: number;
  readonly isPaused: boolean;
}

interface Count {
  readonly host: string;
  /** Since the session began. */
  total: number;
  /** Since a person last resumed it. */
  recent: number;
}

/**
 * Counts the replies in which a credential was masked. A mask confirms that the masked text is the credential, so an agent
 * that makes a service echo its guesses could try a list of weak passwords. Above the limit a binding pauses for that
 * session until a person resumes it (design section 13, invariant 9). The counts are in memory only. What is paused is saved
 * with the session, so that a restart does not resume it.
 */
export class MaskedReplies {
  readonly #most: number;
  readonly #isLive: (sessionId: string) => boolean;
  readonly #onPaused: (sessionId: string, paused: readonly PausedUse[]) => void;
  readonly #sessions = new Map<string, Map<string, Count>>();

  /** `onPaused` gets everything that is paused for a session, whenever that changes. */
  constructor(
    most: number,
    isLive: (sessionId: string) => boolean,
    onPaused: (sessionId: string, paused: readonly PausedUse[]) => void = () => undefined,
  ) {
    this.#most = most;
    this.#isLive = isLive;
    this.#onPaused = onPaused;
  }

  /** Pauses again what an earlier run of the sidecar had paused. */
  restore(sessionId: string, paused: readonly PausedUse[]): void {
    const counts = this.#countsOf(sessionId);
    for (const { binding, host } of paused) counts.set(binding, { host, total: 0, recent: this.#most + 1 });
  }

  /** Counts one more; returns `now_paused` for the one that exceeds the limit. */
  count({ sessionId, binding, host }: MaskedUse): 'counted' | 'now_paused' | 'paused' {
    const counts = this.#countsOf(sessionId);
    const count = counts.get(binding) ?? { host, total: 0, recent: 0 };
    counts.set(binding, count);
    count.total += 1;
    count.recent += 1;
    if (count.recent <= this.#most) return 'counted';
    if (count.recent > this.#most + 1) return 'paused';
    this.#onPaused(sessionId, this.#listPaused(sessionId));
    return 'now_paused';
  }

  /** Why a request of the session may not have its credential; null if it may. */
  refuse(sessionId: string | null, binding: string): Refusal | null {
    const count = sessionId === null ? undefined : this.#sessions.get(sessionId)?.get(binding);
    if (count === undefined || count.recent <= this.#most) return null;
    const message =
      `replies of ${count.host} to this session contained its credential ${count.recent} times, which is more than ` +
      `SVC_MAX_MASKED_REPLIES allows; if that is expected, run \`svc sessions resume ${sessionId}\``;
    return refusal('binding_paused', message);
  }

  countsOfSession(sessionId: string): readonly MaskedCount[] {
    const counts = [...(this.#sessions.get(sessionId)?.values() ?? [])];
    return counts.map(({ host, total, recent }) => ({ host, maskedReplies: total, isPaused: recent > this.#most }));
  }

  /** Resumes the session's paused bindings, and returns their hosts. */
  resume(sessionId: string): readonly string[] {
    const paused = [...(this.#sessions.get(sessionId)?.values() ?? [])].filter(({ recent }) => recent > this.#most);
    for (const count of paused) count.recent = 0;
    if (paused.length > 0) this.#onPaused(sessionId, []);
    return paused.map(({ host }) => host);
  }

  #listPaused(sessionId: string): readonly PausedUse[] {
    const counts = [...(this.#sessions.get(sessionId) ?? [])];
    return counts.filter(([, { recent }]) => recent > this.#most).map(([binding, { host }]) => ({ binding, host }));
  }

  #countsOf(sessionId: string): Map<string, Count> {
    const known = this.#sessions.get(sessionId);
    if (known !== undefined) return known;
    for (const id of this.#sessions.keys()) if (!this.#isLive(id)) this.#sessions.delete(id);
    const counts = new Map<string, Count>();
    this.#sessions.set(sessionId, counts);
    return counts;
  }
}

/** The audit event for a binding that pauses or is resumed. */
export function pauseEvent(what: 'paused' | 'resumed', sessionId: string, host: string): UnstampedEvent {
  return {
    type: `sandbox.proxy.binding_${what}`,
    session_id: sessionId,
    actor: what === 'paused' ? 'session' : null,
    data: { 'svc.proxy.upstream.host': host, 'svc.proxy.reason': 'masked_replies' },
  };
}
