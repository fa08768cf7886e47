import {
  departureReply,
  memberInput,
  memberParams,
  memberRecord,
  membersPage,
  membersQuery,
} from '../../../shared/wire/members.ts';
import { revisionHeaders } from '../../../shared/net/http/if_match.ts';
import { listMemberPage, putMember as changeMember } from '../../services/people/members.ts';
import { describeDeparture, removeMember } from '../../services/people/departure.ts';
import { expectedRevision } from '../http/expected_revision.ts';
import { forUser } from '../http/operation.ts';
import { emptyReply, jsonReply } from '../http/replies.ts';

export const getMembers = forUser({
  summary: 'List the users of your enterprise',
  description: 'For admins.',
  query: membersQuery,
  replies: { 200: membersPage },
  async handle({ context, who, query }) {
    return jsonReply(await listMemberPage(context, who, query));
  },
});

export const putMember = forUser({
  summary: 'Set the role of a user, and whether it is suspended',
  description:
    'Suspending a user signs it out everywhere, and ends its sidecars, personal tokens, MCP clients and approval grants for good. Only owners change owners and admins; an enterprise keeps at least one owner who can sign in. With the revision that you read, or in quotes as If-Match, the user is changed only if nobody has changed it since (409 conflict).',
  params: memberParams,
  headers: revisionHeaders,
  body: memberInput,
  replies: { 200: memberRecord },
  async handle({ context, who, params, headers, body: { revision, ...change } }) {
    const expected = expectedRevision(headers['If-Match'], revision);
    if (!expected.ok) return expected;
    return jsonReply(await changeMember(context, who, params.id, change, expected.value));
  },
});

export const getDeparture = forUser({
  summary: 'Count what would leave with a member',
  description: 'For admins, and for yourself. These are deleted, revoked or signed out if the member goes.',
  params: memberParams,
  replies: { 200: departureReply },
  async handle({ context, who, params }) {
    return jsonReply(await describeDeparture(context, who, params.id));
  },
});

export const deleteMember = forUser({
  summary: 'Remove a member, or leave',
  description:
    'For admins, and for yourself; only owners remove admins and owners, and the last owner stays. What is the member’s own is deleted, and its sign-ins, tokens and sidecars end at once. The person joins again only by an invitation.',
  params: memberParams,
  replies: { 204: 'Removed' },
  async handle({ context, who, params }) {
    return emptyReply(await removeMember(context, who, params.id));
  },
});
