import {
  deleteSubscription,
  findByEndpoint,
  listReachableBrowsers,
  listReachableUsers,
  noteSubscription,
  type PushSubscriptionRow,
} from '../../store/people/push_subscriptions.ts';
import { type ApprovalRow, findApproval } from '../../store/approvals.ts';
import { ok } from '../../../shared/model/result.ts';
import { commit } from '../../kernel/commit.ts';
import { sha256Base64Url } from '../../kernel/encoding.ts';
import { controlChain } from '../../kernel/policy_change.ts';
import { pauseAfter, readRetryAfter } from '../../kernel/retry_after.ts';
import { nowSeconds, nowText, type ServiceContext } from '../../kernel/service_context.ts';
import { countAttempt } from '../../store/throttles.ts';
import { ownViewer } from '../approvals/approval_rows.ts';
import { approversDue } from '../approvals/approval_standings.ts';
import { encryptPush } from './encrypt_push.ts';
import { openPushSigner, type PushSigner } from './push_key.ts';
import { MOST_OF_USER, offersPush, openSubscription, type PushTarget, removedEvent } from './push_subscriptions.ts';
import { inTurn } from './push_turns.ts';

const USERS_AT_A_TIME = 100;
/** Messages to one browser: an agent that asks without end does not ring all night. */
const MOST_AN_HOUR = 60;
const HOUR_SECONDS = 3600;
/** The pause after a message that was not taken: it doubles. */
const PAUSE = { firstMs: 15_000, mostMs: 3_600_000 };
const TOPIC_CHARACTERS = 32;
/** A push service has little to say. */
const LIMITS = { maxReplyBytes: 16 * 1024, timeoutMs: 10_000 };

/**
 * Tells the browsers of those who may approve a request that it waits. The message names nothing that others chose, has no authority,
 * and can be read by the browser alone. It is sent once: the list shows what waits.
 */
export async function sendPushes(
  context: ServiceContext,
  { enterpriseId, userId, id }: Pick<ApprovalRow, 'enterpriseId' | 'userId' | 'id'>,
): Promise<void> {
  const { database, publicUrl } = context;
  if (!offersPush(context) || publicUrl === null) return;
  const row = await findApproval(database, ownViewer({ userId, enterpriseId }), { id, now: nowText(context) });
  if (row?.state !== 'pending') return;
  const due = await findDue(context, row);
  if (due.length === 0) return;
  const signer = await openPushSigner(context, publicUrl);
  if (signer === null) {
    for (const each of due) await note(context, each, { ...each, problem: 'push_key_damaged' });
    throw new Error('the key for push services in the database is damaged');
  }
  await inTurn(due, {
    isStopped: () => context.stopping.aborted,
    run: (subscription) => sendPush(context, signer, { subscription, row }),
  });
}

/** The browsers to tell: of everybody who may approve the request and has not, after a user. */
async function findDue(context: ServiceContext, row: ApprovalRow, after = ''): Promise<PushSubscriptionRow[]> {
  const { database } = context;
  const { enterpriseId } = row;
  const now = nowSeconds(context);
  const page = await listReachableUsers(database, { enterpriseId, nowSeconds: now, after, limit: USERS_AT_A_TIME });
  const users = page.map((each) => ({ ...each, enterpriseId }));
  const userIds = (await approversDue(context, users, row)).map(({ userId }) => userId);
  const browsers = await listReachableBrowsers(database, { userIds, nowSeconds: now });
  const last = users[USERS_AT_A_TIME - 1];
  return last === undefined ? browsers : [...browsers, ...(await findDue(context, row, last.userId))];
}

/** A browser to tell, and of what. */
interface Due {
  readonly subscription: PushSubscriptionRow;
  readonly row: ApprovalRow;
}

async function sendPush(context: ServiceContext, signer: PushSigner, { subscription, row }: Due): Promise<void> {
  const { outbound, clock } = context;
  if (!(await takeTurn(context, subscription))) {
    return note(context, subscription, { ...subscription, problem: 'hourly_limit' });
  }
  const target = await openSubscription(context.vault, subscription);
  if (target === null) return note(context, subscription, { ...subscription, problem: 'vault_entry_damaged' });
  const message = { title: 'A request needs an approval', path: `/approvals/${row.id}`, tag: row.id };
  const called = await outbound.call({
    method: 'POST',
    // The browser chose it.
    url: target.endpoint,
    isStrangers: true,
    headers: {
      authorization: await signer.authorize(target.endpoint),
      'content-type': 'application/octet-stream',
      'content-encoding': 'aes128gcm',
      // RFC 8030 sections 5.2 to 5.4: as long as it can be decided, at once, and in place of an undelivered one about the same request.
      ttl: String(Math.max(0, Math.floor((Date.parse(row.expiresAt) - clock.now()) / 1000))),
      urgency: 'high',
      topic: await topicOf(target, row),
    },
    body: await encryptPush(target, new TextEncoder().encode(JSON.stringify(message))),
    limits: LIMITS,
  });
  if (!called.ok) return noteFailure(context, subscription, called.error.reason, 0);
  const { status, retryAfter } = called.value;
  if (status >= 200 && status < 300) return note(context, subscription, { quietUntil: 0, failures: 0, problem: null });
  // The browser has withdrawn the permission, or the subscription has ended (RFC 8030 section 7.3).
  if (status === 404 || status === 410) return remove(context, row, subscription);
  return noteFailure(context, subscription, `status_${status}`, readRetryAfter(retryAfter, clock.now()) ?? 0);
}

/** The same for one browser and one request. Push services cannot tell by it which browsers are told of the same request. */
async function topicOf({ auth }: PushTarget, { id }: ApprovalRow): Promise<string> {
  return (await sha256Base64Url(`${auth} ${id}`)).slice(0, TOPIC_CHARACTERS);
}

/** One browser has its limit whichever session or user it tells; and a user has one, however many addresses their browsers give. */
async function takeTurn(
  context: ServiceContext,
  { endpointHash, userId }: Pick<PushSubscriptionRow, 'endpointHash' | 'userId'>,
): Promise<boolean> {
  const { database } = context;
  const now = nowSeconds(context);
  const window = { windowEnds: now + HOUR_SECONDS, nowSeconds: now };
  const counted = await database.write([
    countAttempt(database, `push to ${endpointHash}`, { most: MOST_AN_HOUR, ...window }),
    countAttempt(database, `push for ${userId}`, { most: MOST_AN_HOUR * MOST_OF_USER, ...window }),
  ]);
  return counted.ok && counted.value.every((changed) => changed === 1);
}

type Change = Pick<PushSubscriptionRow, 'quietUntil' | 'failures' | 'problem'>;

/** It is left alone for a while, so that an address that does not answer holds up no message for long. */
function noteFailure(
  context: ServiceContext,
  subscription: PushSubscriptionRow,
  problem: string,
  askedMs: number,
): Promise<void> {
  const failures = subscription.failures + 1;
  const quietUntil = Math.ceil((context.clock.now() + pauseAfter(failures, askedMs, PAUSE)) / 1000);
  return note(context, subscription, { quietUntil, failures, problem });
}

/** Only what changed is written. */
async function note(
  { database }: ServiceContext,
  subscription: PushSubscriptionRow,
  { quietUntil, failures, problem }: Change,
): Promise<void> {
  const isSame =
    subscription.problem === problem && subscription.quietUntil === quietUntil && subscription.failures === failures;
  if (!isSame) await database.write([noteSubscription(database, subscription, { quietUntil, failures, problem })]);
}

/** Its push service does not know it any more. */
async function remove(
  context: ServiceContext,
  { enterpriseId }: Pick<ApprovalRow, 'enterpriseId'>,
  subscription: PushSubscriptionRow,
): Promise<void> {
  const { database } = context;
  const removed = await commit(context, controlChain({ enterpriseId }), async () => {
    const now = await findByEndpoint(database, subscription.endpointHash);
    if (now?.subscription.sessionId !== subscription.sessionId) return ok({ statements: [], events: [], value: null });
    const statements = [deleteSubscription(database, subscription)];
    return ok({ statements, events: [removedEvent(subscription, null)], value: null });
  });
  if (!removed.ok) throw new Error(removed.error.message);
}
