import type { Result } from '../../shared/model/result.ts';
import { SeenOutcomes } from '../kernel/seen_outcomes.ts';
import type { RegistryMirrorRow } from '../store/registry_mirrors.ts';
import { Flights } from './flights.ts';
import { type Icon, openIcons } from './icons.ts';
import type { KeptReplies } from './kept_replies.ts';
import { openReadmes, type Readme } from './readmes.ts';
import type { RegistryPage, RegistryFailure } from './registry_client.ts';
import { ServerIndex } from './server_index.ts';

/** A program's cached data of its registry. It does no I/O, so requests may share it. */
export interface Registry {
  /** Without a trailing slash. */
  readonly url: string;
  /** How long a request may keep syncing the mirror after its reply; null if only the end of the program ends it. */
  readonly syncMs: number | null;
  /** The limit of calls per minute for this kind of caller. */
  readonly mostCalls: number;
  readonly flights: Flights;
  readonly responses: Responses;
  readonly index: ServerIndex;
  readonly syncs: Syncs;
  /** How the calls that sync the mirror went. */
  readonly outcomes: SeenOutcomes;
  readonly known: KnownMirror;
  readonly icons: KeptReplies<Icon>;
  readonly readmes: KeptReplies<Readme>;
}

export function openRegistry(url: string, syncMs: number | null): Registry {
  return {
    url,
    syncMs,
    mostCalls: MOST_CALLS_A_MINUTE,
    flights: new Flights(),
    responses: new Responses(),
    index: new ServerIndex(),
    syncs: new Syncs(),
    outcomes: new SeenOutcomes(),
    known: new KnownMirror(),
    icons: openIcons(),
    readmes: openReadmes(),
  };
}

/** The registry for callers who are not signed in. */
export function forVisitors(registry: Registry): Registry {
  return { ...registry, mostCalls: MOST_CALLS_OF_VISITORS };
}

/** How long the row of a complete mirror is cached. */
const KNOWN_MS = 5_000;

/** The cached row of the mirror. */
class KnownMirror {
  #known: { readonly mirror: RegistryMirrorRow; readonly readMs: number } | null = null;

  find(nowMs: number): RegistryMirrorRow | null {
    return this.#known !== null && nowMs - this.#known.readMs < KNOWN_MS ? this.#known.mirror : null;
  }

  note(mirror: RegistryMirrorRow, nowMs: number): void {
    this.#known = { mirror, readMs: nowMs };
  }
}

/** When this program last tried to update the mirror; other requests need not try again at once. */
class Syncs {
  #triedMs = Number.NEGATIVE_INFINITY;

  mayBegin(nowMs: number, everyMs: number): boolean {
    if (nowMs - this.#triedMs < everyMs) return false;
    this.#triedMs = nowMs;
    return true;
  }
}

/** A page of the registry, and when it was fetched. */
export interface Fetched {
  readonly page: RegistryPage;
  readonly fetchedAtMs: number;
}

/** How long a reply of the registry is fresh (specification section 8). */
export const FRESH_MS = 15 * 60_000;
/**
 * How long the registry is not called after a failure, unless it names a time itself. An invalid reply affects only its
 * own URL.
 */
const PAUSE_MS = { not_found: 30_000, bad_reply: 10_000, unavailable: 5_000, too_many_requests: 60_000 } as const;
const MOST_FAILURES = 1_000;
/** Total size of the cached documents; the oldest are dropped first. */
const MAX_CHARACTERS = 12 * 1024 * 1024;
/**
 * The public registry allows 600 requests a minute per address. This limit is for browsing; the mirror has its own
 * pace.
 */
const MOST_CALLS_A_MINUTE = 240;
/** Callers who are not signed in get half of it. */
const MOST_CALLS_OF_VISITORS = 120;
const MINUTE_MS = 60_000;

interface Pause {
  readonly untilMs: number;
  readonly problem: RegistryFailure;
}

/** The registry's replies by URL, in memory, and its recent failures. */
class Responses {
  readonly #fetched = new Map<string, Fetched>();
  #characters = 0;
  /** For the whole registry, and by URL. */
  #pause: Pause | null = null;
  readonly #failures = new Map<string, Pause>();
  #minute = { begunMs: 0, calls: 0 };

  /** The cached reply of any age. */
  find(url: string): Fetched | null {
    return this.#fetched.get(url) ?? null;
  }

  /** The cached reply if it is fresh. */
  findFresh(url: string, nowMs: number): Fetched | null {
    const fetched = this.find(url);
    return fetched !== null && nowMs - fetched.fetchedAtMs < FRESH_MS ? fetched : null;
  }

  /** Records the registry's answer. A failed call is remembered for seconds, and "not found" for half a minute. */
  note(url: string, answer: Result<RegistryPage, RegistryFailure>, nowMs: number): void {
    if (answer.ok) return this.#keep(url, { page: answer.value, fetchedAtMs: nowMs });
    const problem = answer.error;
    if (problem.reason === 'not_found') this.#drop(url);
    const pauseMs = (problem.retryAfterSeconds ?? 0) * 1000 || PAUSE_MS[problem.reason];
    const failure = { untilMs: nowMs + pauseMs, problem };
    if (problem.reason === 'unavailable' || problem.reason === 'too_many_requests') this.#pause = failure;
    else this.#fail(url, failure);
  }

  /** Why a URL must not be called now: the registry just failed, asked for a pause, or was called too often. */
  problem(url: string, nowMs: number, mostCalls: number): RegistryFailure | null {
    const failure = this.#failures.get(url);
    if (failure !== undefined && nowMs < failure.untilMs) return failure.problem;
    const pause = this.pause(nowMs);
    return pause === null && this.#calls(nowMs) >= mostCalls ? TOO_MANY : pause;
  }

  /** Why the registry must not be called now, with the remaining time if it named one. */
  pause(nowMs: number): RegistryFailure | null {
    if (this.#pause === null || nowMs >= this.#pause.untilMs) return null;
    const { problem, untilMs } = this.#pause;
    const left = Math.ceil((untilMs - nowMs) / 1000);
    return { ...problem, retryAfterSeconds: problem.retryAfterSeconds === null ? null : left };
  }

  countCall(nowMs: number): void {
    this.#minute = { begunMs: this.#isOver(nowMs) ? nowMs : this.#minute.begunMs, calls: this.#calls(nowMs) + 1 };
  }

  #calls(nowMs: number): number {
    return this.#isOver(nowMs) ? 0 : this.#minute.calls;
  }

  #isOver(nowMs: number): boolean {
    return nowMs - this.#minute.begunMs >= MINUTE_MS;
  }

  #keep(url: string, fetched: Fetched): void {
    this.#drop(url);
    this.#fetched.set(url, fetched);
    this.#characters += sizeOf(fetched);
    for (const oldest of this.#fetched.keys()) {
      if (this.#characters <= MAX_CHARACTERS || oldest === url) break;
      this.#drop(oldest);
    }
  }

  #fail(url: string, failure: Pause): void {
    this.#failures.delete(url);
    this.#failures.set(url, failure);
    const [oldest] = this.#failures.keys();
    if (this.#failures.size > MOST_FAILURES && oldest !== undefined) this.#failures.delete(oldest);
  }

  #drop(url: string): void {
    const fetched = this.#fetched.get(url);
    if (fetched === undefined) return;
    this.#fetched.delete(url);
    this.#characters -= sizeOf(fetched);
  }
}

const TOO_MANY: RegistryFailure = {
  reason: 'too_many_requests',
  message: 'too many calls to the registry at the moment',
  retryAfterSeconds: 60,
};

function sizeOf({ page }: Fetched): number {
  return page.records.reduce((sum, { document }) => sum + document.length, 1_000);
}
