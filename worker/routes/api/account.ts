import { err, ok } from '../../../shared/model/result.ts';
import { healthReply, meReply, signInLinkReply } from '../../../shared/wire/account.ts';
import { apiError } from '../../../shared/wire/errors.ts';
import { describeHealth, describeUser } from '../../services/people/account.ts';
import { createSignInCode } from '../../services/people/sign_in.ts';
import { consoleOrigin } from '../console/console_host.ts';
import { forAnyone, forUser } from '../http/operation.ts';

export const getHealth = forAnyone({
  summary: 'Whether the control plane and its database answer',
  replies: { 200: healthReply },
  async handle({ context }) {
    return ok({ status: 200, json: await describeHealth(context) });
  },
});

export const getMe = forUser({
  summary: 'Who you are',
  replies: { 200: meReply },
  async handle({ context, who }) {
    return ok({ status: 200, json: await describeUser(context, who) });
  },
});

export const postSignInLink = forUser({
  summary: 'Make a link that signs a browser in once',
  description:
    'In local mode alone. The link works once, for ten minutes, at the host name that the console has to itself.',
  replies: { 201: signInLinkReply },
  async handle({ context, who, request }) {
    if (context.local === null)
      return err(apiError('not_found', 'sign-in links are for local mode: sign in with a provider'));
    const { code, expiresAt } = await createSignInCode(context, who);
    const url = `${consoleOrigin(context.local.consoleHost, request.url)}/auth/link/${code}`;
    return ok({ status: 201, json: { url, expires_at: expiresAt } });
  },
});
