import {
  createdInvitation,
  invitationInput,
  invitationParams,
  invitationsPage,
  invitationsQuery,
} from '../../../shared/wire/invitations.ts';
import { createInvitation, listInvitationPage, revokeInvitation } from '../../sign_in/invitations.ts';
import { forUser } from '../http/operation.ts';
import { createdReply, emptyReply, jsonReply } from '../http/replies.ts';

export const postInvitation = forUser({
  summary: 'Invite an address to your enterprise',
  description:
    'For admins; only owners invite admins and owners. Only this reply contains the link. It is mailed if this control plane sends mail. A signed-in person who has proven this address accepts it in a browser, once. An open invitation of the same address is revoked.',
  body: invitationInput,
  replies: { 201: createdInvitation },
  async handle({ context, who, body }) {
    return createdReply(await createInvitation(context, who, body));
  },
});

export const getInvitations = forUser({
  summary: 'List the invitations to your enterprise, without their links',
  description: 'For admins. Newest first; those that ended are listed for another 30 days.',
  query: invitationsQuery,
  replies: { 200: invitationsPage },
  async handle({ context, who, query }) {
    return jsonReply(await listInvitationPage(context, who, query));
  },
});

export const deleteInvitation = forUser({
  summary: 'Revoke an open invitation',
  params: invitationParams,
  replies: { 204: 'Revoked' },
  async handle({ context, who, params }) {
    return emptyReply(await revokeInvitation(context, who, params.id));
  },
});
