import {
  deleteSubscription,
  listReachableBrowsers,
  noteSubscription,
  type ReachableBrowser,
} from '../../store/people/push_subscriptions.ts';
import { type ApprovalRow, findApproval } from '../../store/approvals.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { OutboundReply } from '../../kernel/outbound.ts';
import { readRetryAfter } from '../../kernel/retry_after.ts';
import { nowSeconds, nowText, type ServiceContext } from '../../kernel/service_context.ts';
import { countAttempt } from '../../store/throttles.ts';
import { viewerOf } from '../approvals/approval_rows.ts';
import { standingOf } from '../approvals/approval_standings.ts';
import { encryptPush } from './encrypt_push.ts';
import { openPushSigner, type PushSigner } from './push_key.ts';
import { offersPush, openSubscription } from './push_subscriptions.ts';

/** Of one enterprise, for one request. */
const MOST_BROWSERS = 200;
const AT_A_TIME = 8;
/** Messages to one browser: an agent that asks without end does not ring all night. */
const MOST_AN_HOUR = 60;
const HOUR_SECONDS = 3600;
/** The longest pause that a push service can ask for. */
const LONGEST_PAUSE_MS = 24 * 3_600_000;
/** A push service has little to say. */
const LIMITS = { maxReplyBytes: 16 * 1024, timeoutMs: 10_000 };

/**
 * Tells the browsers of those who may approve a request that it waits. The message names nothing that others chose, has no authority,
 * and can be read by the browser alone. It is sent once: the list shows what waits.
 */
export async function sendPushes(
  context: ServiceContext,
  { enterpriseId, id }: Pick<ApprovalRow, 'enterpriseId' | 'id'>,
): Promise<void> {
  const { database, publicUrl } = context;
  if (!offersPush(context) || publicUrl === null) return;
  const page = { enterpriseId, nowSeconds: nowSeconds(context), limit: MOST_BROWSERS };
  const browsers = await listReachableBrowsers(database, page);
  if (browsers.length === 0) return;
  const due = await findDue(context, { enterpriseId, id }, browsers);
  if (due.length === 0) return;
  const signer = await openPushSigner(context, publicUrl);
  const work = async () => {
    for (let next = due.shift(); next !== undefined && !context.stopping.aborted; next = due.shift()) {
      await sendPush(context, signer, next);
    }
  };
  const done = await Promise.allSettled(Array.from({ length: AT_A_TIME }, () => work()));
  const failed = done.find((each) => each.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}

/** A browser to tell, and of what. */
interface Due {
  readonly browser: ReachableBrowser;
  readonly row: ApprovalRow;
}

/** The browsers of those who see the request, whose approval counts, and who have not given it. */
async function findDue(
  context: ServiceContext,
  { enterpriseId, id }: Pick<ApprovalRow, 'enterpriseId' | 'id'>,
  browsers: readonly ReachableBrowser[],
): Promise<Due[]> {
  const rows = new Map<string, ApprovalRow | null>();
  for (const { subscription, role } of browsers) {
    const { userId } = subscription;
    if (!rows.has(userId)) rows.set(userId, await findForApprover(context, { userId, enterpriseId, role }, id));
  }
  return browsers.flatMap((browser) => {
    const row = rows.get(browser.subscription.userId) ?? null;
    return row === null ? [] : [{ browser, row }];
  });
}

async function findForApprover(context: ServiceContext, caller: Caller, id: string): Promise<ApprovalRow | null> {
  const row = await findApproval(context.database, viewerOf(caller), { id, now: nowText(context) });
  if (row?.state !== 'pending') return null;
  const { mayApprove, votes } = await standingOf(context, caller, row);
  return mayApprove && !votes.some(({ userId }) => userId === caller.userId) ? row : null;
}

async function sendPush(
  context: ServiceContext,
  signer: PushSigner,
  { browser: { subscription }, row }: Due,
): Promise<void> {
  const { database, outbound, clock } = context;
  if (!(await takeTurn(context, subscription.sessionId))) return;
  const target = await openSubscription(context.vault, subscription);
  if (target === null) return note(context, subscription, { quietUntil: 0, problem: 'vault_entry_damaged' });
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
      // RFC 8030 sections 5.2 to 5.4: no longer than it waits, at once, and in place of an undelivered one about the same request.
      ttl: String(Math.max(0, Math.floor((Date.parse(row.expiresAt) - clock.now()) / 1000))),
      urgency: 'high',
      topic: row.id,
    },
    body: await encryptPush(target, new TextEncoder().encode(JSON.stringify(message))),
    limits: LIMITS,
  });
  if (!called.ok) return note(context, subscription, { quietUntil: 0, problem: called.error.reason });
  const { status } = called.value;
  // The browser has withdrawn the permission, or the subscription has ended (RFC 8030 section 7.3).
  if (status === 404 || status === 410) await database.write([deleteSubscription(database, subscription)]);
  else await note(context, subscription, readReply(called.value, clock.now()));
}

function readReply(
  { status, retryAfter }: OutboundReply,
  nowMs: number,
): { quietUntil: number; problem: string | null } {
  if (status >= 200 && status < 300) return { quietUntil: 0, problem: null };
  const afterMs = Math.min(readRetryAfter(retryAfter, nowMs) ?? 0, LONGEST_PAUSE_MS);
  return { quietUntil: afterMs === 0 ? 0 : Math.ceil((nowMs + afterMs) / 1000), problem: `status_${status}` };
}

async function takeTurn(context: ServiceContext, sessionId: string): Promise<boolean> {
  const { database } = context;
  const now = nowSeconds(context);
  const window = { most: MOST_AN_HOUR, windowEnds: now + HOUR_SECONDS, nowSeconds: now };
  const counted = await database.write([countAttempt(database, `push ${sessionId}`, window)]);
  return counted.ok && counted.value.at(-1) === 1;
}

/** Only what changed is written. */
async function note(
  { database }: ServiceContext,
  subscription: ReachableBrowser['subscription'],
  change: { readonly quietUntil: number; readonly problem: string | null },
): Promise<void> {
  const isSame = subscription.problem === change.problem && subscription.quietUntil === change.quietUntil;
  if (!isSame) await database.write([noteSubscription(database, subscription, change)]);
}
