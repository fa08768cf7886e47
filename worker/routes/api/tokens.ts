import { ok } from '../../../shared/model/result.ts';
import { createdToken, tokenInput, tokenParams, tokensPage, tokensQuery } from '../../../shared/wire/tokens.ts';
import { createPersonalToken, listPersonalTokenPage, removePersonalToken } from '../../tokens/personal_tokens.ts';
import { forUser } from '../http/operation.ts';
import { jsonReply } from '../http/replies.ts';

export const postToken = forUser({
  summary: 'Create a personal token',
  description: 'Only this reply contains the token: only its hash is stored.',
  body: tokenInput,
  replies: { 201: createdToken },
  async handle({ context, who, body }) {
    const created = await createPersonalToken(context, who, body);
    return created.ok ? ok({ status: 201, json: created.value }) : created;
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
    const removed = await removePersonalToken(context, who, params.id);
    return removed.ok ? ok({ status: 204 }) : removed;
  },
});
