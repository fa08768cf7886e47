import {
  pendingLogin,
  pendingLoginInput,
  pendingLoginParams,
  discardedLogins,
  storeLoginInput,
  storeLoginReply,
} from '../../../shared/wire/pending_logins.ts';
import {
  discardPendingLogin,
  discardPendingLogins,
  getPendingLogin as findPendingLogin,
  openPendingLogin,
  storePendingLogin,
} from '../../services/connectors/pending_logins.ts';
import { forUser } from '../http/operation.ts';
import { changeReply, createdReply, emptyReply, jsonReply } from '../http/replies.ts';

export const postPendingLogin = forUser({
  summary: 'Open a login of a program',
  description:
    'A sidecar of the caller may then send the tokens of this login, once, encrypted. It replaces an earlier login of the same program that waits. It ends after half an hour.',
  body: pendingLoginInput,
  replies: { 201: pendingLogin },
  async handle({ context, who, body }) {
    return createdReply(await openPendingLogin(context, who, body));
  },
});

export const getPendingLogin = forUser({
  summary: 'Get a login that waits, without its tokens',
  params: pendingLoginParams,
  replies: { 200: pendingLogin },
  async handle({ context, who, params }) {
    return jsonReply(await findPendingLogin(context, who, params.id));
  },
});

export const deletePendingLogins = forUser({
  summary: "Delete all of the caller's logins that wait, with their tokens",
  replies: { 200: discardedLogins },
  async handle({ context, who }) {
    return jsonReply(await discardPendingLogins(context, who));
  },
});

export const deletePendingLogin = forUser({
  summary: 'Delete a login that waits, with its tokens',
  params: pendingLoginParams,
  replies: { 204: 'Deleted' },
  async handle({ context, who, params }) {
    return emptyReply(await discardPendingLogin(context, who, params.id));
  },
});

export const postStoredLogin = forUser({
  summary: 'Store the tokens of a login',
  description:
    "As the credential of the program's own connector, or, if they cannot be refreshed, as a secret. They are not used before.",
  params: pendingLoginParams,
  body: storeLoginInput,
  replies: { 200: storeLoginReply },
  async handle({ context, who, params, body }) {
    const stored = await storePendingLogin(context, who, params.id, body);
    return changeReply(stored, (value) => ({ status: 200, json: value }));
  },
});
