import { ok } from '../../../shared/model/result.ts';
import { providersReply } from '../../../shared/wire/auth.ts';
import { listMethods } from '../../sign_in/methods.ts';
import { forAnyone } from '../http/operation.ts';

export const getProviders = forAnyone({
  summary: 'List the ways to sign in',
  description: 'Only configured ones, so that a page can show a button for each.',
  replies: { 200: providersReply },
  async handle({ context }) {
    return ok({ status: 200, json: listMethods(context) });
  },
});
