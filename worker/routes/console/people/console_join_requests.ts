import { ROLES } from '../../../../shared/model/role.ts';
import { joinAcceptance } from '../../../../shared/wire/people/join_requests.ts';
import { joinRequestsPage } from '../../../pages/people/join_requests.ts';
import { mayInvite } from '../../../sign_in/invitations.ts';
import {
  acceptRequest,
  askToJoin,
  declineRequest,
  listJoinRequestPage,
  withdrawRequest,
} from '../../../sign_in/join_requests.ts';
import type { AppContext } from '../../http/app_env.ts';
import { forChange, forReader, type PageEntry, problem, redirectDone } from '../console.ts';
import { consolePage } from '../pages.ts';

const SHOWN = 100;
const LIST = '/members/requests';
const idOf = (c: AppContext): string => c.req.param('id') ?? '';

/** `GET /members/requests` */
const getRequests = forReader(async (c, caller) => {
  const { cursor, done } = c.req.query();
  const requests = await listJoinRequestPage(c.get('context'), caller, { limit: SHOWN, cursor });
  if (!requests.ok) return problem(c, caller, requests.error);
  const roles = ROLES.filter((role) => mayInvite(caller, role)).toReversed();
  return consolePage(c, caller, joinRequestsPage({ requests: requests.value, roles, cursor, done }));
});

/** `POST /members/requests/{id}/accept` */
const submitAcceptance = forChange(async (c, caller, fields) => {
  const { role } = joinAcceptance.catch({ role: 'member' }).parse({ role: fields['role'] });
  const accepted = await acceptRequest(c.get('context'), caller, idOf(c), role);
  return accepted.ok ? redirectDone(c, LIST, 'join_accepted') : problem(c, caller, accepted.error);
});

/** `POST /members/requests/{id}/decline` */
const submitRefusal = forChange(async (c, caller) => {
  const declined = await declineRequest(c.get('context'), caller, idOf(c));
  return declined.ok ? redirectDone(c, LIST, 'join_declined') : problem(c, caller, declined.error);
});

/** `POST /enterprises/{id}/ask` */
const submitAsking = forChange(async (c, caller) => {
  const asked = await askToJoin(c.get('context'), caller, idOf(c));
  if (!asked.ok) return problem(c, caller, asked.error);
  return redirectDone(c, '/enterprises', asked.value.state === 'accepted' ? 'joined' : 'asked_to_join');
});

/** `POST /enterprises/requests/{id}/withdraw` */
const submitWithdrawal = forChange(async (c, caller) => {
  const withdrawn = await withdrawRequest(c.get('context'), caller, idOf(c));
  return withdrawn.ok ? redirectDone(c, '/enterprises', 'join_withdrawn') : problem(c, caller, withdrawn.error);
});

/** They come before the pages of members by id. */
export const JOIN_PAGES: readonly PageEntry[] = [
  ['get', '/members/requests', getRequests],
  ['post', '/members/requests/{id}/accept', submitAcceptance],
  ['post', '/members/requests/{id}/decline', submitRefusal],
  ['post', '/enterprises/{id}/ask', submitAsking],
  ['post', '/enterprises/requests/{id}/withdraw', submitWithdrawal],
];
