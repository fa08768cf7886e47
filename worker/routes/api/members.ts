import { memberInput, memberParams, memberRecord, membersPage, membersQuery } from '../../../shared/wire/members.ts';
import { listMemberPage, putMember as changeMember } from '../../services/people/members.ts';
import { forUser } from '../http/operation.ts';
import { jsonReply } from '../http/replies.ts';

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
    'Suspending a user signs it out everywhere and revokes its sidecars. Only owners change owners and admins; an enterprise keeps at least one owner who can sign in.',
  params: memberParams,
  body: memberInput,
  replies: { 200: memberRecord },
  async handle({ context, who, params, body }) {
    return jsonReply(await changeMember(context, who, params.id, body));
  },
});
