import { signInParams, signInsPage, signInsQuery } from '../../../shared/wire/sign_ins.ts';
import { endSignIn, listSignInPage } from '../../tokens/sign_ins.ts';
import { forUser } from '../http/operation.ts';
import { emptyReply, jsonReply } from '../http/replies.ts';

export const getSessions = forUser({
  summary: 'List your signed-in browsers and programs',
  query: signInsQuery,
  replies: { 200: signInsPage },
  async handle({ context, who, query }) {
    return jsonReply(await listSignInPage(context, who, query));
  },
});

export const deleteSession = forUser({
  summary: 'Sign out one of your browsers or programs',
  description: 'Its next call is refused.',
  params: signInParams,
  replies: { 204: 'Signed out' },
  async handle({ context, who, params }) {
    return emptyReply(await endSignIn(context, who, params.id));
  },
});
