import { revisionHeaders } from '../../../shared/net/http/if_match.ts';
import {
  groupInput,
  groupMemberParams,
  groupMembersPage,
  groupParams,
  groupRecord,
  groupReplacement,
  groupsPage,
  groupsQuery,
} from '../../../shared/wire/sharing/groups.ts';
import {
  addGroupMember,
  createGroup,
  getGroup as findGroup,
  listGroupMemberPage,
  listGroupPage,
  putGroup as renameGroup,
  removeGroup,
  removeGroupMember,
} from '../../services/sharing/groups.ts';
import { expectedRevision } from '../http/expected_revision.ts';
import { forUser } from '../http/operation.ts';
import { createdReply, emptyReply, jsonReply } from '../http/replies.ts';

export const getGroups = forUser({
  summary: 'List the groups of your enterprise',
  query: groupsQuery,
  replies: { 200: groupsPage },
  async handle({ context, who, query }) {
    return jsonReply(await listGroupPage(context, who, query));
  },
});

export const postGroup = forUser({
  summary: 'Create a group',
  description: 'For admins.',
  body: groupInput,
  replies: { 201: groupRecord },
  async handle({ context, who, body }) {
    return createdReply(await createGroup(context, who, body));
  },
});

export const getGroup = forUser({
  summary: 'Get a group',
  params: groupParams,
  replies: { 200: groupRecord },
  async handle({ context, who, params }) {
    return jsonReply(await findGroup(context, who, params.id));
  },
});

export const putGroup = forUser({
  summary: 'Rename a group',
  description:
    'For admins. With the revision that you read, or in quotes as If-Match, it is renamed only if nobody has renamed it since (409 conflict).',
  params: groupParams,
  headers: revisionHeaders,
  body: groupReplacement,
  replies: { 200: groupRecord },
  async handle({ context, who, params, headers, body: { revision, ...input } }) {
    const expected = expectedRevision(headers['If-Match'], revision);
    if (!expected.ok) return expected;
    return jsonReply(await renameGroup(context, who, params.id, input, expected.value));
  },
});

export const deleteGroup = forUser({
  summary: 'Delete a group',
  description: 'For admins. What is shared with it is no longer shared; its people stay in the enterprise.',
  params: groupParams,
  replies: { 204: 'Deleted' },
  async handle({ context, who, params }) {
    return emptyReply(await removeGroup(context, who, params.id));
  },
});

export const getGroupMembers = forUser({
  summary: 'List the people in a group',
  description: 'For everybody in the enterprise, to know with whom something is shared.',
  params: groupParams,
  query: groupsQuery,
  replies: { 200: groupMembersPage },
  async handle({ context, who, params, query }) {
    return jsonReply(await listGroupMemberPage(context, who, params.id, query));
  },
});

export const putGroupMember = forUser({
  summary: 'Put a member of the enterprise into a group',
  description: 'For admins. No change if it is in the group.',
  params: groupMemberParams,
  replies: { 204: 'In the group' },
  async handle({ context, who, params }) {
    return emptyReply(await addGroupMember(context, who, params));
  },
});

export const deleteGroupMember = forUser({
  summary: 'Take somebody out of a group',
  description:
    'For admins. What is shared with the group is gone from the sidecars of the person at their next poll, within seconds.',
  params: groupMemberParams,
  replies: { 204: 'Out of the group' },
  async handle({ context, who, params }) {
    return emptyReply(await removeGroupMember(context, who, params));
  },
});
