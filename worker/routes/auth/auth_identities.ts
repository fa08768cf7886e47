import { z } from 'zod';
import { err, type Result } from '../../../shared/model/result.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import { identitiesPage as identitiesReply, identitiesQuery, identityParams } from '../../../shared/wire/identities.ts';
import { MAX_PAGE } from '../../../shared/wire/primitives.ts';
import { identitiesPage, linkQuestionPage, linkStartPage } from '../../pages/people/sign_in_identities.ts';
import type { Caller } from '../../kernel/caller.ts';
import { findProvider } from '../../sign_in/find_provider.ts';
import { beginSignIn, type FinishedFlow } from '../../sign_in/flows.ts';
import { listIdentityPage, removeIdentity } from '../../sign_in/identities.ts';
import { linkerOf, linkIdentity, linkOver, offerLink } from '../../sign_in/linking.ts';
import type { AuthProvider } from '../../sign_in/provider.ts';
import type { AppContext } from '../http/app_env.ts';
import { setFlowCookies } from './auth_cookies.ts';
import { findProviderCallback } from './provider_callback.ts';
import { refusalPage } from './auth_refusal.ts';
import { callerOfBrowser, crossSite, isSameOrigin } from '../http/authenticate.ts';
import { invalidInput } from '../http/error_reply.ts';
import { forUser } from '../http/operation.ts';
import { consolePage, page, showSignIn } from '../console/pages.ts';
import { emptyReply, jsonReply } from '../http/replies.ts';

export const getIdentities = forUser({
  summary: 'List your ways to sign in',
  description: 'To add one, use the page /identities in a browser.',
  query: identitiesQuery,
  replies: { 200: identitiesReply },
  async handle({ context, who, query }) {
    return jsonReply(await listIdentityPage(context, who, query));
  },
});

export const deleteIdentity = forUser({
  summary: 'Remove one of your ways to sign in',
  description:
    "Ends its sessions, except the calling one. The last way cannot be removed. Anyone who verifies the account's address can still sign in to it.",
  params: identityParams,
  replies: { 204: 'Removed' },
  async handle({ context, who, params }) {
    return emptyReply(await removeIdentity(context, who, params.id));
  },
});

/** `GET /identities`: the user's ways to sign in. */
export async function getIdentitiesPage(c: AppContext): Promise<Response> {
  const caller = await callerOfBrowser(c);
  if (caller === null) return showSignIn(c, 401);
  const context = c.get('context');
  const listed = await listIdentityPage(context, caller, { limit: MAX_PAGE });
  if (!listed.ok) return refusal(c, listed.error);
  const own = await findProvider(context, caller.enterpriseId);
  const providers = [...context.signIn.providers.values(), ...(own === null ? [] : [own])];
  const view = identitiesPage({ identities: listed.value.items, providers, nowMs: context.clock.now() });
  return consolePage(c, caller, view);
}

/** `POST /auth/{provider}/link`: starts adding a sign-in to the user's account. */
export function beginLink(c: AppContext): Promise<Response> {
  return fromOurPage(c, async (caller) => {
    const linker = linkerOf(caller);
    if (linker === null) return refusal(c, linkOver());
    const callback = await findProviderCallback(c);
    if (!callback.ok) return refusal(c, callback.error);
    const { provider, redirectURL } = callback.value;
    const how = { redirectURL, returnTo: '/identities', linker, clientAddress: c.get('clientAddress') };
    const begun = await beginSignIn(c.get('context'), provider, how);
    if (!begun.ok) return refusal(c, begun.error);
    setFlowCookies(c, begun.value);
    return page(c, linkStartPage({ title: provider.title, url: begun.value.url }), 200);
  });
}

/** Asks the user to confirm the identity that the provider returned. */
export async function askToLink(
  c: AppContext,
  provider: AuthProvider,
  { linker, identity }: Extract<FinishedFlow, { kind: 'links' }>,
): Promise<Response> {
  const offered = await offerLink(c.get('context'), linker, { provider: provider.name, identity });
  if (!offered.ok) return refusal(c, offered.error);
  return page(c, linkQuestionPage(provider.title, identity, offered.value), 200);
}

const linkForm = z.strictObject({ offer: z.string().max(10_000), seal: z.string().max(200) });

/** `POST /identities/link`: the confirmation. */
export function submitLink(c: AppContext): Promise<Response> {
  return changeFromOurPage(c, linkForm, (caller, form) => linkIdentity(c.get('context'), caller, form));
}

/** `POST /identities/remove`. */
export function submitRemoval(c: AppContext): Promise<Response> {
  return changeFromOurPage(c, identityParams, (caller, { id }) => removeIdentity(c.get('context'), caller, id));
}

function changeFromOurPage<T>(
  c: AppContext,
  form: z.ZodType<T>,
  change: (caller: Caller, fields: T) => Promise<Result<null, ApiError>>,
): Promise<Response> {
  return fromOurPage(c, async (caller) => {
    const fields = form.safeParse(await c.req.parseBody());
    const changed = fields.success ? await change(caller, fields.data) : err(invalidInput('json', fields.error));
    return changed.ok ? c.redirect('/identities', 303) : refusal(c, changed.error);
  });
}

/** A form from one of our own pages with a signed-in browser, so that no other site can add or remove anything. */
async function fromOurPage(c: AppContext, answer: (caller: Caller) => Promise<Response>): Promise<Response> {
  const caller = await callerOfBrowser(c);
  if (caller === null) return showSignIn(c, 401);
  return isSameOrigin(c) ? answer(caller) : refusal(c, crossSite());
}

function refusal(c: AppContext, error: ApiError): Promise<Response> {
  return refusalPage(c, error, {
    title: 'Nothing was changed',
    next: { path: '/identities', title: 'Ways to sign in' },
  });
}
