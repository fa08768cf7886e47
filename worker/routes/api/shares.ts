import {
  acceptInput,
  shareInput,
  shareParams,
  shareRecord,
  sharesPage,
  sharesQuery,
} from '../../../shared/wire/sharing/shares.ts';
import {
  acceptReceived,
  createShare,
  declineReceived,
  listSharePage,
  removeShare,
} from '../../services/sharing/shares.ts';
import { forUser } from '../http/operation.ts';
import { changeReply, createdReply, emptyReply, jsonReply } from '../http/replies.ts';

export const getShares = forUser({
  summary: 'List shares',
  description:
    'Those that you gave, or with list=received those with you, each with what it is to you; with list=all, for admins, all of the enterprise.',
  query: sharesQuery,
  replies: { 200: sharesPage },
  async handle({ context, who, query }) {
    return jsonReply(await listSharePage(context, who, query));
  },
});

export const postShare = forUser({
  summary: 'Share a binding, connector or MCP server of yours, with its credential, with a colleague or a group',
  description:
    'A binding fixes the hosts, the scheme and the effect, so it needs an effect, and allowed_hosts if its host is a wildcard. A connector needs a credential. An MCP server that runs a program is shared only without credentials. Receivers use what is shared and cannot change it or read its secret’s path. What an admin shares is used at once; what another member shares is used by each receiver who accepts it.',
  body: shareInput,
  replies: { 201: shareRecord },
  async handle({ context, who, body }) {
    return createdReply(await createShare(context, who, body));
  },
});

export const deleteShare = forUser({
  summary: 'End a share',
  description: 'For whoever gave it, and for admins.',
  params: shareParams,
  replies: { 204: 'Ended' },
  async handle({ context, who, params }) {
    return emptyReply(await removeShare(context, who, params.id));
  },
});

export const postShareAcceptance = forUser({
  summary: 'Accept what a colleague shares with you',
  description:
    'With the revision that you saw. From then on your requests for it are sent under the account that the colleague chose. A change of what is shared has to be accepted again.',
  params: shareParams,
  body: acceptInput,
  replies: { 200: shareRecord },
  async handle({ context, who, params, body }) {
    const accepted = await acceptReceived(context, who, params.id, body.revision);
    return changeReply(accepted, (share) => ({ status: 200, json: share }));
  },
});

export const postShareRefusal = forUser({
  summary: 'No longer use what a colleague shares with you',
  description: 'Takes your acceptance back. What an admin shares stays in force: that is refused with conflict.',
  params: shareParams,
  replies: { 204: 'No longer used' },
  async handle({ context, who, params }) {
    return changeReply(await declineReceived(context, who, params.id), () => ({ status: 204 }));
  },
});
