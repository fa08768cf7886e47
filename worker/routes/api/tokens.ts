import { createdToken, tokenInput, tokenParams, tokensPage, tokensQuery } from '../../../shared/wire/tokens.ts';
import { createPersonalToken, listPersonalTokenPage, removePersonalToken } from '../../tokens/personal_tokens.ts';
import { forUser } from '../http/operation.ts';
import { createdReply, emptyReply, jsonReply } from '../http/replies.ts';

export const postToken = forUser({
  summary: 'Create a personal token',
  description: 'Only this reply contains the token: only its hash is stored.',
  body: tokenInput,
  replies: { 201: createdToken },
  async handle({ context, who, body }) {
    return createdReply(await createPersonalToken(context, who, body));
  },
});

export const getTokens = forUser({
  summary: 'List your personal tokens, without their text',
  query: tokensQuery,
  replies: { 200: tokensPage },
  async handle({ context, who, query }) {
    return jsonReply(await listPersonalTokenPage(context, who, query));
  },
});

export const deleteToken = forUser({
  summary: 'Revoke a personal token',
  params: tokenParams,
  replies: { 204: 'Revoked' },
  async handle({ context, who, params }) {
    return emptyReply(await removePersonalToken(context, who, params.id));
  },
});
