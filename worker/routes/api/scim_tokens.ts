import {
  createdScimToken,
  scimTokenInput,
  scimTokenParams,
  scimTokensPage,
  scimTokensQuery,
} from '../../../shared/wire/scim_tokens.ts';
import { createScimToken, listScimTokenPage, removeScimToken } from '../../scim/scim_tokens.ts';
import { forUser } from '../http/operation.ts';
import { createdReply, emptyReply, jsonReply } from '../http/replies.ts';

export const postScimToken = forUser({
  summary: 'Create a token for the directory of your enterprise',
  description:
    'For owners. The directory calls /scim/v2 with it (SCIM 2.0). Only this reply contains the token: only its hash is stored.',
  body: scimTokenInput,
  replies: { 201: createdScimToken },
  async handle({ context, who, body }) {
    return createdReply(await createScimToken(context, who, body));
  },
});

export const getScimTokens = forUser({
  summary: 'List the SCIM tokens of your enterprise, without their text',
  description: 'For admins.',
  query: scimTokensQuery,
  replies: { 200: scimTokensPage },
  async handle({ context, who, query }) {
    return jsonReply(await listScimTokenPage(context, who, query));
  },
});

export const deleteScimToken = forUser({
  summary: 'Revoke a SCIM token',
  description:
    'For admins. Its next call is refused. Once no token works, groups that the directory manages can be changed by hand.',
  params: scimTokenParams,
  replies: { 204: 'Revoked' },
  async handle({ context, who, params }) {
    return emptyReply(await removeScimToken(context, who, params.id));
  },
});
