import { fromBase64Url } from '../kernel/encoding.ts';
import type { MarketplaceContext } from './marketplace_context.ts';
import { findMirror } from '../store/registry_mirrors.ts';
import { findDocuments } from '../store/registry_servers.ts';
import { type Icon, readIcon } from './icons.ts';
import { entryOf } from './registry_record.ts';

/** Larger images are not shown. */
const MAX_ICON_BYTES = 64 * 1024;
const TIMEOUT_MS = 5_000;
const HEADERS = { accept: 'image/png, image/jpeg, image/webp, image/gif', 'user-agent': 'svc' };

/** Shown while an image cannot be had: one transparent pixel, so that a page has no broken image. */
export const BLANK: Icon = {
  type: 'image/gif',
  bytes: fromBase64Url('R0lGODlhAQABAIAAAAAAAP___yH5BAEAAAAALAAAAAABAAEAAAIBRAA7'),
};

/** The image of an entry of the mirror; null if the entry names none. The registry is not called for it, and the address is called only as a stranger's. */
export async function findIcon(context: MarketplaceContext, name: string): Promise<Icon | null> {
  const url = await findIconUrl(context, name);
  if (url === null) return null;
  const { clock, registry } = context;
  const look = () => registry.icons.find(url, clock.now());
  const work = () => fetchIcon(context, url);
  const found = await registry.flights.join(context, { key: `icon ${url}`, patienceMs: TIMEOUT_MS, look, work });
  return found?.value ?? BLANK;
}

async function findIconUrl({ database, registry }: MarketplaceContext, name: string): Promise<string | null> {
  const mirror = await findMirror(database, registry.url);
  if (mirror === null) return null;
  const document = (await findDocuments(database, mirror.id, [name])).get(name);
  return document === undefined ? null : (entryOf(document).icons[0] ?? null);
}

async function fetchIcon({ outbound, clock, registry }: MarketplaceContext, url: string): Promise<void> {
  if (!registry.icons.mayCall(clock.now())) return registry.icons.postpone(url, clock.now());
  const limits = { maxReplyBytes: MAX_ICON_BYTES, timeoutMs: TIMEOUT_MS };
  const request = { method: 'GET', url, headers: HEADERS, body: null, limits, isStrangers: true };
  const reply = await outbound.call(request);
  const icon = reply.ok && reply.value.status === 200 ? readIcon(reply.value.body) : null;
  registry.icons.note(url, icon, clock.now());
}
