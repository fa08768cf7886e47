import { ROLES } from '../../../shared/model/role.ts';
import type { Result } from '../../../shared/model/result.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import { invitationInput } from '../../../shared/wire/invitations.ts';
import { EMPTY_FORM } from '../../pages/components/form_field.ts';
import {
  acceptPage,
  enterprisesPage,
  invitationsPage,
  invitedPage,
  invitePage,
} from '../../pages/people/invitations.ts';
import type { Caller } from '../../kernel/caller.ts';
import { acceptInvitation, openInvitation } from '../../sign_in/accept_invitation.ts';
import { createInvitation, listInvitationPage, mayInvite, revokeInvitation } from '../../sign_in/invitations.ts';
import { listJoinOffers } from '../../sign_in/join_requests.ts';
import type { SignedIn } from '../../sign_in/sign_in_identity.ts';
import { listMemberships, switchEnterprise } from '../../sign_in/switch_enterprise.ts';
import { refusalPage } from '../auth/auth_refusal.ts';
import { setSessionCookie } from '../auth/auth_cookies.ts';
import type { AppContext } from '../http/app_env.ts';
import { callerOfBrowser } from '../http/authenticate.ts';
import {
  dropEmpty,
  forChange,
  formAgain,
  forReader,
  invalidForm,
  type PageEntry,
  problem,
  redirectDone,
  toRefusedForm,
} from './console.ts';
import { consolePage, page } from './pages.ts';

const SHOWN = 100;
const CONSOLE = { path: '/', title: 'To the console' };

const rolesOf = (caller: Caller) => ROLES.filter((role) => mayInvite(caller, role)).toReversed();

/** `GET /members/invite` */
const getInvite = forReader(async (c, caller) => {
  const form = { ...EMPTY_FORM, values: { role: 'member', expires_in_days: '7' } };
  return consolePage(c, caller, invitePage(rolesOf(caller), form));
});

/** `POST /members/invite` */
const submitInvite = forChange(async (c, caller, fields) => {
  const { expires_in_days: days, ...others } = dropEmpty(fields);
  const parsed = invitationInput.safeParse({ ...others, expires_in_days: Number(days ?? Number.NaN) });
  if (!parsed.success) return formAgain(c, caller, invitePage(rolesOf(caller), invalidForm(fields, parsed.error)));
  const created = await createInvitation(c.get('context'), caller, parsed.data);
  if (created.ok) return consolePage(c, caller, invitedPage(created.value));
  const form = toRefusedForm(fields, created.error);
  return formAgain(c, caller, invitePage(rolesOf(caller), form), created.error);
});

/** `GET /members/invitations` */
const getInvitations = forReader(async (c, caller) => {
  const { cursor, done: code } = c.req.query();
  const listed = await listInvitationPage(c.get('context'), caller, { limit: SHOWN, cursor });
  if (!listed.ok) return problem(c, caller, listed.error);
  return consolePage(c, caller, invitationsPage({ invitations: listed.value, cursor, done: code }));
});

/** `POST /members/invitations/{id}/revoke` */
const submitRevocation = forChange(async (c, caller) => {
  const revoked = await revokeInvitation(c.get('context'), caller, c.req.param('id') ?? '');
  return revoked.ok ? redirectDone(c, '/members/invitations', 'invitation_revoked') : problem(c, caller, revoked.error);
});

/** `GET /invitations/{token}`: what a link is for. An ended one says so without asking for a sign-in. */
async function getInvitation(c: AppContext): Promise<Response> {
  const opened = await openInvitation(c.get('context'), c.req.param('token') ?? '');
  if (!opened.ok) return refusalPage(c, opened.error, { title: 'No invitation', next: CONSOLE });
  const { record: invitation, inviter, enterprise } = opened.value;
  const isSignedIn = (await callerOfBrowser(c)) !== null;
  return page(c, acceptPage({ invitation, inviter, enterprise, path: c.req.path, isSignedIn }), 200);
}

/** `POST /invitations/{token}`: joins, and goes on in the new enterprise if its rules let the browser in. */
const submitAcceptance = forChange(async (c, caller) => {
  const accepted = await acceptInvitation(c.get('context'), caller, c.req.param('token') ?? '');
  if (!accepted.ok) return refusalPage(c, accepted.error, { title: 'Not joined', next: CONSOLE });
  const switched = await goTo(c, caller, accepted.value.enterpriseId);
  return switched.ok ? c.redirect('/', 303) : c.redirect('/enterprises', 303);
});

/** `GET /enterprises` */
const getEnterprises = forReader(async (c, caller) => {
  const context = c.get('context');
  const [memberships, offers] = [await listMemberships(context, caller), await listJoinOffers(context, caller)];
  return consolePage(c, caller, enterprisesPage({ memberships, offers, done: c.req.query('done') }));
});

/** `POST /enterprises/{id}/use` */
const submitSwitch = forChange(async (c, caller) => {
  const switched = await goTo(c, caller, c.req.param('id') ?? '');
  return switched.ok ? c.redirect('/', 303) : problem(c, caller, switched.error);
});

async function goTo(c: AppContext, caller: Caller, enterpriseId: string): Promise<Result<SignedIn, ApiError>> {
  const to = { enterpriseId, client: c.req.header('user-agent') ?? '' };
  const switched = await switchEnterprise(c.get('context'), caller, to);
  if (switched.ok) setSessionCookie(c, switched.value.token);
  return switched;
}

/** The pages of invitations, and of switching to another enterprise. They come before the pages of members by id. */
export const INVITATION_PAGES: readonly PageEntry[] = [
  ['get', '/members/invite', getInvite],
  ['post', '/members/invite', submitInvite],
  ['get', '/members/invitations', getInvitations],
  ['post', '/members/invitations/{id}/revoke', submitRevocation],
  ['get', '/invitations/{token}', getInvitation],
  ['post', '/invitations/{token}', submitAcceptance],
  ['get', '/enterprises', getEnterprises],
  ['post', '/enterprises/{id}/use', submitSwitch],
];
