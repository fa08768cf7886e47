import { err, ok } from '../../../shared/model/result.ts';
import {
  accountDeletionQuery,
  accountDeletionReply,
  healthReply,
  meReply,
  signInLinkReply,
} from '../../../shared/wire/account.ts';
import { apiError } from '../../../shared/wire/errors.ts';
import { describeHealth, describeUser } from '../../services/people/account.ts';
import { createSignInCode } from '../../services/people/sign_in.ts';
import { consoleOrigin } from '../console/console_host.ts';
import { describeAccountDeletion, removeAccount } from '../../sign_in/account_deletion.ts';
import { forAnyone, forUser } from '../http/operation.ts';
import { emptyReply, jsonReply } from '../http/replies.ts';

export const getHealth = forAnyone({
  summary: 'Check whether the control plane and its database answer',
  replies: { 200: healthReply },
  async handle({ context }) {
    return ok({ status: 200, json: await describeHealth(context) });
  },
});

export const getMe = forUser({
  summary: 'Get the signed-in user',
  replies: { 200: meReply },
  async handle({ context, who }) {
    return ok({ status: 200, json: await describeUser(context, who) });
  },
});

export const getAccountDeletion = forUser({
  summary: 'Count what the deletion of your account would delete',
  description: 'If nobody else is in your enterprise, it goes too. The sign-in must be your own.',
  replies: { 200: accountDeletionReply },
  async handle({ context, who }) {
    return jsonReply(await describeAccountDeletion(context, who));
  },
});

export const deleteAccount = forUser({
  summary: 'Delete your account',
  description:
    'The query confirm repeats your address. Your user leaves the enterprise with everything that is its own, and your ways to sign in are deleted. Nothing brings it back. Leave your other enterprises first; the last owner of an enterprise with others in it makes somebody else an owner first.',
  query: accountDeletionQuery,
  replies: { 204: 'Deleted' },
  async handle({ context, who, query }) {
    return emptyReply(await removeAccount(context, who, query.confirm));
  },
});

export const postSignInLink = forUser({
  summary: 'Create a link that signs a browser in once',
  description: "Only in local mode. The link works once, for ten minutes, at the console's own host name.",
  replies: { 201: signInLinkReply },
  async handle({ context, who, request }) {
    if (context.local === null)
      return err(apiError('not_found', 'sign-in links are only for local mode: sign in with a provider'));
    const { code, expiresAt } = await createSignInCode(context, who);
    const url = `${consoleOrigin(context.local.consoleHost, request.url)}/auth/link/${code}`;
    return ok({ status: 201, json: { url, expires_at: expiresAt } });
  },
});
