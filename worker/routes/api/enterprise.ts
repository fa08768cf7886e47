import { ok } from '../../../shared/model/result.ts';
import {
  deletionQuery,
  deletionReply,
  enterpriseInput,
  enterpriseSettings,
  membershipParams,
  membershipsReply,
} from '../../../shared/wire/enterprise.ts';
import { revisionHeaders } from '../../../shared/net/http/if_match.ts';
import { describeDeletion, removeEnterprise } from '../../services/people/enterprise_deletion.ts';
import { describeSettings, replaceSettings } from '../../sign_in/enterprise_settings.ts';
import { listMemberships } from '../../sign_in/switch_enterprise.ts';
import { tokenPair } from '../../../shared/wire/device.ts';
import { switchProgram } from '../../tokens/switch_program.ts';
import { expectedRevision } from '../http/expected_revision.ts';
import { forUser } from '../http/operation.ts';
import { emptyReply, jsonReply } from '../http/replies.ts';

export const getEnterprise = forUser({
  summary: 'Get your enterprise and its sign-in settings',
  replies: { 200: enterpriseSettings },
  async handle({ context, who }) {
    return ok({ status: 200, json: await describeSettings(context, who) });
  },
});

export const putEnterprise = forUser({
  summary: 'Change your enterprise and its sign-in settings',
  description:
    'For admins. Each new domain in oidc.domains must have the enterprise’s id as a line of /.well-known/svc-enterprise.txt. Browsers and programs that could not sign in with the new settings are signed out. With the revision that you read, or in quotes as If-Match, the settings are replaced only if nobody has changed them since (409 conflict).',
  headers: revisionHeaders,
  body: enterpriseInput,
  replies: { 200: enterpriseSettings },
  async handle({ context, who, headers, body: { revision, ...input } }) {
    const expected = expectedRevision(headers['If-Match'], revision);
    if (!expected.ok) return expected;
    return jsonReply(await replaceSettings(context, who, input, expected.value));
  },
});

export const getEnterpriseDeletion = forUser({
  summary: 'Count what the deletion of your enterprise would delete',
  description: 'For owners. These are of the enterprise and all of its users; they are deleted, revoked or signed out.',
  replies: { 200: deletionReply },
  async handle({ context, who }) {
    return jsonReply(await describeDeletion(context, who));
  },
});

export const deleteEnterprise = forUser({
  summary: 'Delete your enterprise',
  description:
    'For owners. The query confirm repeats the slug. Everything that the enterprise and its users own is deleted, and all sign-ins, tokens and sidecars end at once. Nothing brings it back. The audit log is kept as long as every audit log.',
  query: deletionQuery,
  replies: { 204: 'Deleted' },
  async handle({ context, who, query }) {
    return emptyReply(await removeEnterprise(context, who, query.confirm));
  },
});

export const getEnterprises = forUser({
  summary: 'List the enterprises that you have a user in',
  description:
    'A call, session or sidecar belongs to one user. The page /enterprises switches a browser. Who signed in by an enterprise’s own provider sees only that enterprise.',
  replies: { 200: membershipsReply },
  async handle({ context, who }) {
    return ok({ status: 200, json: { items: await listMemberships(context, who) } });
  },
});

export const postEnterpriseSignIn = forUser({
  summary: 'Sign a program in to another enterprise of yours',
  description:
    'Returns tokens of your user there, under that enterprise’s sign-in rules. The sign-in of the call stays: end it at POST /auth/revoke.',
  params: membershipParams,
  replies: { 200: tokenPair },
  async handle({ context, who, params }) {
    return jsonReply(await switchProgram(context, who, params.id));
  },
});
