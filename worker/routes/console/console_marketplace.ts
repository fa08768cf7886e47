import { apiError, ERROR_STATUS } from '../../../shared/wire/errors.ts';
import { marketplaceDetailQuery, marketplaceQuery } from '../../../shared/wire/marketplace.ts';
import { browse } from '../../marketplace/browse.ts';
import { BLANK, findIcon } from '../../marketplace/find_icon.ts';
import { findReadme } from '../../marketplace/find_readme.ts';
import { showEntry } from '../../marketplace/show_entry.ts';
import { type MarketplaceView, marketplacePage } from '../../pages/mcp/marketplace.ts';
import { type EntryView, marketplaceEntryPage } from '../../pages/mcp/marketplace_entry.ts';
import type { Page } from '../../pages/frame/layout.ts';
import { problemPage } from '../../pages/frame/problem.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import type { Result } from '../../../shared/model/result.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { AppContext } from '../http/app_env.ts';
import { callerOfBrowser } from '../http/authenticate.ts';
import type { PageRoute } from './console.ts';
import { errorReply, invalidInput } from '../http/error_reply.ts';
import { browsingContext } from '../api/marketplace.ts';
import { consolePage, page } from './pages.ts';
import { toSentence } from '../../../shared/model/sentence.ts';

const SHOWN = 30;

/** A public page; signed-in users see it within the console. */
function forVisitor(
  answer: (c: AppContext, caller: Caller | null) => Promise<{ readonly view: Page; readonly error: ApiError | null }>,
): PageRoute {
  return async (c) => {
    const caller = await callerOfBrowser(c);
    const { view, error } = await answer(c, caller);
    const status = error === null ? 200 : ERROR_STATUS[error.code];
    return caller === null ? page(c, view, status) : consolePage(c, caller, view, status);
  };
}

/** `GET /marketplace?q=&registry_type=&transport=&needs_secret=&publisher=&cursor=` */
export const getMarketplace = forVisitor(async (c, caller) => {
  const { q = '', registry_type = '', transport = '', needs_secret = '', publisher = '', cursor = '' } = c.req.query();
  const query = { q: q.trim(), registry_type, transport, needs_secret, publisher: publisher.trim(), cursor };
  const found = await search(c, caller, query);
  const shown = found.ok ? found.value : { problem: toSentence(found.error.message), requestId: c.get('requestId') };
  const view = marketplacePage({ query, found: shown, nowMs: c.get('context').clock.now() });
  return { view, error: found.ok ? null : found.error };
});

async function search(
  c: AppContext,
  caller: Caller | null,
  query: MarketplaceView['query'],
): Promise<Result<Exclude<MarketplaceView['found'], { readonly problem: string }>, ApiError>> {
  const given = Object.fromEntries(Object.entries(query).filter(([, value]) => value !== ''));
  const parsed = marketplaceQuery.safeParse({ ...given, limit: SHOWN });
  if (!parsed.success) return { ok: false, error: invalidInput('query', parsed.error) };
  const context = await browsingContext(c.get('context'), caller, c.get('clientAddress'));
  return context.ok ? browse(context.value, caller, parsed.data) : context;
}

/** `GET /marketplace/{registryId}?version=&readme=1`, with the slash of the name encoded or not. */
export const getMarketplaceEntry = forVisitor(async (c, caller) => {
  const name = c.req.param('registryId') ?? '';
  const version = c.req.query('version') ?? '';
  const parsed = marketplaceDetailQuery.safeParse(version === '' ? {} : { version });
  if (!parsed.success) return answerRefusal(c, invalidInput('query', parsed.error));
  const context = await browsingContext(c.get('context'), caller, c.get('clientAddress'));
  if (!context.ok) return answerRefusal(c, context.error);
  const entry = await showEntry(context.value, caller, { name, version: parsed.data.version ?? null });
  if (!entry.ok) return answerRefusal(c, entry.error);
  const readme = await readmeOf(c, caller, { name, version: parsed.data.version ?? null });
  const view = { entry: entry.value, readme, isSignedIn: caller !== null, nowMs: context.value.clock.now() };
  return { view: marketplaceEntryPage(view), error: null };
});

/** Only if a signed-in person asks for it, because it calls hosts that the publisher names. */
async function readmeOf(
  c: AppContext,
  caller: Caller | null,
  wanted: { readonly name: string; readonly version: string | null },
): Promise<EntryView['readme']> {
  if (caller === null || c.req.query('readme') !== '1') return null;
  const found = await findReadme(c.get('context'), wanted);
  return found.ok ? found.value : { problem: toSentence(found.error.message) };
}

/** No script runs in an image, and it can be used by our own pages only. */
const ICON_HEADERS = {
  'content-security-policy': "default-src 'none'; sandbox",
  'cross-origin-resource-policy': 'same-origin',
};
const KEPT_SECONDS = 86_400;
const BLANK_SECONDS = 300;

/** `GET /marketplace-icons/{registryId}`: the image of an entry, which the control plane fetches for its users. */
export async function getMarketplaceIcon(c: AppContext): Promise<Response> {
  const caller = await callerOfBrowser(c);
  const icon = caller === null ? null : await findIcon(c.get('context'), c.req.param('registryId') ?? '');
  if (icon === null) return errorReply(c, apiError('not_found', 'this server has no image'));
  for (const [name, value] of Object.entries(ICON_HEADERS)) c.header(name, value);
  c.header('cache-control', `private, max-age=${icon === BLANK ? BLANK_SECONDS : KEPT_SECONDS}`);
  c.header('content-type', icon.type);
  return c.body(icon.bytes, 200);
}

function answerRefusal(c: AppContext, error: ApiError) {
  return { view: problemPage(error, { path: c.req.path, requestId: c.get('requestId') }), error };
}
