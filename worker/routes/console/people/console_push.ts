import { readPushKey } from '../../../services/push/push_key.ts';
import {
  listSubscribedBrowsers,
  offersPush,
  subscribe,
  unsubscribe,
} from '../../../services/push/push_subscriptions.ts';
import type { Caller } from '../../../kernel/caller.ts';
import type { PushView } from '../../../pages/people/push_panel.ts';
import type { AppContext } from '../../http/app_env.ts';
import { getAsset } from '../../http/asset_reply.ts';
import { forChange, type PageEntry, problem, redirectDone } from '../console.ts';

/** Null where notifications are not offered. */
export async function readPushView({ var: { context } }: AppContext, caller: Caller): Promise<PushView | null> {
  if (!offersPush(context)) return null;
  const [key, browsers] = await Promise.all([readPushKey(context), listSubscribedBrowsers(context, caller)]);
  return { key, browsers };
}

/** `POST /account/push`: what the browser gave the page's island. */
const submitPush = forChange(async (c, caller, fields) => {
  const subscribed = await subscribe(c.get('context'), caller, fields);
  return subscribed.ok ? redirectDone(c, '/account', 'push_on') : problem(c, caller, subscribed.error);
});

/** `POST /account/push/{id}/end` */
const submitPushEnd = forChange(async (c, caller) => {
  const ended = await unsubscribe(c.get('context'), caller, c.req.param('id') ?? '');
  return ended.ok ? redirectDone(c, '/account', 'push_off') : problem(c, caller, ended.error);
});

/**
 * `GET /push_worker.js`: the service worker of every page of this origin, so its URL has no hash. A browser asks for it again, and
 * finds a new version.
 */
async function getPushWorker(c: AppContext): Promise<Response> {
  const reply = await getAsset(c, c.get('assets').urlOf('push_worker.js'));
  reply.headers.set('cache-control', 'no-cache');
  return reply;
}

export const PUSH_PAGES: readonly PageEntry[] = [
  ['post', '/account/push', submitPush],
  ['post', '/account/push/{id}/end', submitPushEnd],
  ['get', '/push_worker.js', getPushWorker],
];
