import type { Database } from '../store/database.ts';
import type { AnchorSettings } from '../../shared/model/anchor_settings.ts';
import type { ApiLimits } from '../../shared/model/limits.ts';
import { newId, type IdPrefix } from '../../shared/wire/ids.ts';
import type { ControlPlane } from './control_key.ts';
import type { Lifetime } from './lifetime.ts';
import type { CallRate } from './call_rate.ts';
import type { Mail } from './mail.ts';
import type { OpenCalls } from './open_calls.ts';
import type { Outbound } from './outbound.ts';
import type { SeenEnds } from './seen_ends.ts';
import type { PolicyLooks } from './policy_looks.ts';
import type { Turns } from './turns.ts';
import type { Vault } from './vault.ts';
import type { Clock } from './clock.ts';

/** What every service needs. It is made once per program, or once per request if the runtime needs that. */
export interface ServiceContext extends Lifetime {
  readonly database: Database;
  readonly vault: Vault;
  readonly controlPlane: ControlPlane;
  readonly clock: Clock;
  readonly openCalls: OpenCalls;
  /** Null: enterprises make as many calls as they like. */
  readonly callRate: CallRate | null;
  /** By the id of a secret: how often narrowed values of it are minted. */
  readonly narrowedMints: CallRate<'mint'>;
  /** When values end that this program has seen, by the clock that nobody sets. */
  readonly seenEnds: SeenEnds;
  readonly outbound: Outbound;
  /** Null: no mail is sent from here. */
  readonly mail: Mail | null;
  readonly turns: Turns;
  readonly policyLooks: PolicyLooks;
  /** Where the heads of the audit log are sent; null if nowhere. */
  readonly anchors: AnchorSettings | null;
  /** Days after which audit events are removed; null: never. */
  readonly auditRetentionDays: number | null;
  readonly limits: ApiLimits;
  /** How much people and enterprises may keep, in percent of the defaults (decision 0174). */
  readonly quotaPercent: number;
  /** Null on a hosted control plane. */
  readonly local: LocalMode | null;
  /**
   * The configured origin of this control plane, for tokens, mails and pages; never a Host header. Null if none is set.
   */
  readonly publicUrl: string | null;
  /** The client metadata document that names this control plane to authorization servers; null if there is none. */
  readonly mcpClientUrl: string | null;
}

/** Local mode: one user, signed in by a key file. */
export interface LocalMode {
  readonly userId: string;
  /** base64url SHA-256 of the local key. Comparing hashes keeps the comparison's timing from revealing the key. */
  readonly keyHash: string;
  /**
   * The console's own host name, `svc-….localhost`. Only a signed-in browser knows it. Browsers send a cookie to every
   * port of its host, so on a known name other users' servers could receive it.
   */
  readonly consoleHost: string;
  /** The words that call svc on this machine, for commands to copy. */
  readonly command: readonly string[];
}

/** The current time, in the format of all stored times. */
export function nowText(context: { readonly clock: Clock }): string {
  return new Date(context.clock.now()).toISOString();
}

/** The current time in seconds since the epoch, as tables of what expires have it. */
export function nowSeconds(context: { readonly clock: Pick<Clock, 'now'> }): number {
  return Math.floor(context.clock.now() / 1000);
}

/** `now`, or a millisecond after `before` if the clock has not advanced: each change of a row has a distinct time. */
export function timeAfter(now: string, before: string): string {
  return now > before ? now : new Date(Date.parse(before) + 1).toISOString();
}

/** A clock that is so far behind the last change of a row was set back since. */
const SET_BACK_MS = 1_000;

/**
 * As {@link timeAfter}, of a row whose last change says how old its value is: if the clock was set back, the time that it shows now.
 * Then another change may have had it, but only if the clock shows the same millisecond twice.
 */
export function timeOfChange(now: string, before: string): string {
  return Date.parse(before) - Date.parse(now) > SET_BACK_MS ? now : timeAfter(now, before);
}

/** A new id. Ids sort by creation time. */
export function freshId(context: { readonly clock: Clock }, prefix: IdPrefix): string {
  return newId(prefix, crypto.getRandomValues(new Uint8Array(16)), context.clock.now());
}
