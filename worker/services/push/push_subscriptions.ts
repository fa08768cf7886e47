import { z } from 'zod';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { Secret } from '../../../shared/model/secret.ts';
import { apiError, type ApiError, fieldProblems } from '../../../shared/wire/errors.ts';
import { findBrowserSession } from '../../store/browser_sessions.ts';
import {
  deleteSubscription,
  findByEndpoint,
  insertSubscription,
  listAllOf,
  listSubscriptions,
  type PushSubscriptionRow,
} from '../../store/people/push_subscriptions.ts';
import type { Caller } from '../../kernel/caller.ts';
import { type AuditDraft, type Change, commit } from '../../kernel/commit.ts';
import { fromBase64Url, sha256Base64Url } from '../../kernel/encoding.ts';
import { targetProblem } from '../../kernel/outbound.ts';
import { controlChain } from '../../kernel/policy_change.ts';
import { nowSeconds, nowText, type ServiceContext } from '../../kernel/service_context.ts';
import type { SealPlace, Vault } from '../../kernel/vault.ts';
import { importBrowserKey } from './encrypt_push.ts';

const POINT_BYTES = 65;
const AUTH_BYTES = 16;
/** Of one user; the oldest is told no more. */
export const MOST_OF_USER = 10;

const ofBytes = (bytes: number) =>
  z.string().refine((text) => lengthOf(text) === bytes, `must be ${bytes} bytes as base64url`);

/** What a browser gives when it subscribes (Push API, `PushSubscription.toJSON`). */
const pushTarget = z.strictObject({
  endpoint: z
    .url({ protocol: /^https$/, abort: true })
    .max(1_000)
    .refine((text) => !text.includes('#'), 'must have no fragment: give what the browser gave')
    .refine((text) => !new URL(text).hostname.endsWith('.'), 'must have a host name without a dot at its end')
    // One address has one hash, however it is written.
    .overwrite((text) => new URL(text).href),
  p256dh: ofBytes(POINT_BYTES),
  auth: ofBytes(AUTH_BYTES),
});
export type PushTarget = z.infer<typeof pushTarget>;

function lengthOf(text: string): number {
  return /^[A-Za-z0-9_-]*$/.test(text) && text.length % 4 !== 1 ? fromBase64Url(text).length : -1;
}

/** Whether notifications are offered: on a hosted control plane that knows its own address (decision 0189). */
export function offersPush({ local, publicUrl }: Pick<ServiceContext, 'local' | 'publicUrl'>): boolean {
  return local === null && publicUrl !== null;
}

/** The vault place of a subscription. */
export function subscriptionPlace({ userId, sessionId }: Pick<PushSubscriptionRow, 'userId' | 'sessionId'>): SealPlace {
  return { owner: userId, path: `push-subscriptions/${sessionId}`, version: 1 };
}

/** How a browser is reached; null if the vault cannot open it. */
export async function openSubscription(vault: Vault, row: PushSubscriptionRow): Promise<PushTarget | null> {
  const opened = await vault.open(subscriptionPlace(row), row.sealed);
  return opened === null ? null : pushTarget.parse(JSON.parse(opened.reveal()));
}

/**
 * Has the browser of the call told of requests that wait, until it is signed out. Refuses with `not_found` where this is not offered,
 * `invalid_input` for what no browser gives.
 */
export async function subscribe(
  context: ServiceContext,
  caller: Caller,
  input: Readonly<Record<string, string>>,
): Promise<Result<null, ApiError>> {
  if (!offersPush(context)) return err(apiError('not_found', 'this control plane sends no notifications to browsers'));
  const checked = await checkTarget(input);
  if (!checked.ok) return checked;
  const target = checked.value;
  const session = await findBrowserSession(context.database, caller.signIn ?? '', nowSeconds(context));
  if (session === null) return err(apiError('unauthenticated', 'only a signed-in browser can be told: sign in'));
  const place = { userId: caller.userId, sessionId: session.id };
  const row = {
    ...place,
    endpointHash: await sha256Base64Url(target.endpoint),
    host: new URL(target.endpoint).hostname,
    sealed: await context.vault.seal(subscriptionPlace(place), new Secret(JSON.stringify(target))),
    createdAt: nowText(context),
  };
  return commit(context, controlChain(caller), async () => {
    const [taken, oldest] = await Promise.all([takeOver(context, caller, row), dropOldest(context, caller, row)]);
    const data = { 'svc.control.resource': session.id };
    const event = { type: 'control.push.subscribed' as const, actor: caller.userId, data };
    return ok({
      statements: [...oldest.statements, ...insertSubscription(context.database, row)],
      events: [...oldest.events, ...taken.events, event],
      elsewhere: taken.elsewhere,
      value: null,
    });
  });
}

/** A browser is told no more. `actor`: who turned it off; null if nobody of its enterprise did. */
export function removedEvent({ sessionId }: Pick<PushSubscriptionRow, 'sessionId'>, actor: string | null): AuditDraft {
  return { type: 'control.push.removed', actor, data: { 'svc.control.resource': sessionId } };
}

type NewSubscription = Pick<PushSubscriptionRow, 'sessionId' | 'endpointHash'>;

/** That a browser told another user, or another session, until now. In another enterprise the log does not say who took it over. */
async function takeOver(
  { database }: ServiceContext,
  { userId, enterpriseId }: Caller,
  { sessionId, endpointHash }: NewSubscription,
): Promise<Required<Pick<Change<null>, 'elsewhere'>> & Pick<Change<null>, 'events'>> {
  const earlier = await findByEndpoint(database, endpointHash);
  if (earlier === null || earlier.subscription.sessionId === sessionId) return { events: [], elsewhere: [] };
  const { subscription } = earlier;
  if (earlier.enterpriseId === enterpriseId) return { events: [removedEvent(subscription, userId)], elsewhere: [] };
  return { events: [], elsewhere: [{ chain: controlChain(earlier), events: [removedEvent(subscription, null)] }] };
}

/** Makes room for one more browser of the user. */
async function dropOldest(
  { database }: ServiceContext,
  { userId }: Caller,
  { sessionId, endpointHash }: NewSubscription,
): Promise<Pick<Change<null>, 'statements' | 'events'>> {
  const all = await listAllOf(database, userId);
  const others = all.filter((each) => each.sessionId !== sessionId && each.endpointHash !== endpointHash);
  const dropped = others.slice(MOST_OF_USER - 1);
  return {
    statements: dropped.map((each) => deleteSubscription(database, each)),
    events: dropped.map((each) => removedEvent(each, userId)),
  };
}

async function checkTarget(input: Readonly<Record<string, string>>): Promise<Result<PushTarget, ApiError>> {
  const { endpoint, p256dh, auth } = input;
  const parsed = pushTarget.safeParse({ endpoint, p256dh, auth });
  if (!parsed.success) {
    const fields = fieldProblems(parsed.error);
    const message = fields.map(({ field, message: problem }) => `${field} ${problem}`).join('; ');
    return err(apiError('invalid_input', `the browser gave no subscription: ${message}`, { fields }));
  }
  const problem = targetProblem(new URL(parsed.data.endpoint), false);
  if (problem !== null) return err(apiError('invalid_input', `endpoint: ${problem.message}`));
  try {
    await importBrowserKey(fromBase64Url(parsed.data.p256dh));
  } catch {
    // Each runtime throws an error of its own for a point that is not on the curve.
    return err(apiError('invalid_input', 'p256dh: is no point of the curve P-256: subscribe with a browser'));
  }
  return ok(parsed.data);
}

/** A browser of the caller that is told. */
export interface SubscribedBrowser {
  readonly id: string;
  readonly client: string;
  readonly host: string;
  readonly createdAt: string;
  readonly isCurrent: boolean;
  /** Why the last message was not taken; null if it was. */
  readonly problem: string | null;
}

/** The caller's browsers that are told of requests, newest first. */
export async function listSubscribedBrowsers(
  context: ServiceContext,
  caller: Caller,
): Promise<readonly SubscribedBrowser[]> {
  const mine = { userId: caller.userId, nowSeconds: nowSeconds(context) };
  return (await listSubscriptions(context.database, mine)).map(({ subscription, client, tokenHash }) => ({
    id: subscription.sessionId,
    client,
    host: subscription.host,
    createdAt: subscription.createdAt,
    isCurrent: tokenHash === caller.signIn,
    problem: subscription.problem,
  }));
}

/** Tells a browser of the caller no more. Refuses with `not_found`. */
export function unsubscribe(context: ServiceContext, caller: Caller, id: string): Promise<Result<null, ApiError>> {
  return commit(context, controlChain(caller), async () => {
    const mine = { userId: caller.userId, nowSeconds: nowSeconds(context) };
    const all = await listSubscriptions(context.database, mine);
    const found = all.find(({ subscription }) => subscription.sessionId === id);
    if (found === undefined) return err(apiError('not_found', `no browser ${id} of yours has notifications`));
    const { subscription } = found;
    const statements = [deleteSubscription(context.database, subscription)];
    return ok({ statements, events: [removedEvent(subscription, caller.userId)], value: null });
  });
}
