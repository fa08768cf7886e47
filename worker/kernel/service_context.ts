import type { Database } from '../store/database.ts';
import type { AnchorSettings } from '../../shared/model/anchor_settings.ts';
import type { ApiLimits } from '../../shared/model/limits.ts';
import { newId, type IdPrefix } from '../../shared/wire/ids.ts';
import type { ControlPlane } from './control_key.ts';
import type { Lifetime } from './lifetime.ts';
import type { OpenCalls } from './open_calls.ts';
import type { Outbound } from './outbound.ts';
import type { Turns } from './turns.ts';
import type { Vault } from './vault.ts';

/** What every service works with. It is made once a program, or once a request where a runtime wants that. */
export interface ServiceContext extends Lifetime {
  readonly database: Database;
  readonly vault: Vault;
  readonly controlPlane: ControlPlane;
  readonly clock: Clock;
  readonly openCalls: OpenCalls;
  readonly outbound: Outbound;
  readonly turns: Turns;
  /** Where the heads of the audit log are sent; null: nowhere. */
  readonly anchors: AnchorSettings | null;
  readonly limits: ApiLimits;
  /** Null when this is a hosted control plane. */
  readonly local: LocalMode | null;
  /** The configured origin of this control plane: what tokens, mails and pages name, never a Host header. Null when none is set. */
  readonly publicUrl: string | null;
}

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves after a while, or at once when the signal is aborted. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
}

/** Local mode: one user, signed in by a key file. */
export interface LocalMode {
  readonly userId: string;
  /** base64url SHA-256 of the local key. Hashes are compared, so that the time it takes says nothing about the key. */
  readonly keyHash: string;
  /**
   * The host name that the console has to itself, `svc-….localhost`. Only a browser that signed in knows it: a cookie goes to
   * every port of its host, and so to every server of another user that is called by this name.
   */
  readonly consoleHost: string;
}

/** The clock of the runtime. */
export const SYSTEM_CLOCK: Clock = {
  now: () => Date.now(),
  sleep: (milliseconds, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const done = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', done);
        resolve();
      };
      const timer = setTimeout(done, milliseconds);
      signal?.addEventListener('abort', done, { once: true });
    }),
};

/** Now, as every time is written. */
export function nowText(context: { readonly clock: Clock }): string {
  return new Date(context.clock.now()).toISOString();
}

/** `now`, or a millisecond after `before` when the clock has not moved: each change of a row has a time of its own. */
export function laterThan(now: string, before: string): string {
  return now > before ? now : new Date(Date.parse(before) + 1).toISOString();
}

/** A fresh id that sorts by the time it was made. */
export function freshId(context: { readonly clock: Clock }, prefix: IdPrefix): string {
  return newId(prefix, crypto.getRandomValues(new Uint8Array(16)), context.clock.now());
}
