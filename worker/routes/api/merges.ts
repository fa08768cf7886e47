import { membershipParams } from '../../../shared/wire/enterprise.ts';
import { mergeInput, mergePreview, mergeReply } from '../../../shared/wire/people/merges.ts';
import { mergeEnterprise, previewMerge } from '../../sign_in/merge.ts';
import { forUser } from '../http/operation.ts';
import { jsonReply } from '../http/replies.ts';

export const getMerge = forUser({
  summary: 'See what would move here from an enterprise in which you are alone',
  description: 'Counts by kind, and the names that clash. Only in a sign-in of your own.',
  params: membershipParams,
  replies: { 200: mergePreview },
  async handle({ context, who, params }) {
    return jsonReply(await previewMerge(context, who, params.id));
  },
});

export const postMerge = forUser({
  summary: 'Move everything here from an enterprise in which you are alone',
  description:
    'Secrets, host bindings, tunnelled hosts, client certificates, connectors and MCP servers become your personal ones here, in one write or not at all. Values stay sealed. confirm repeats the slug of that enterprise, which stays, empty.',
  params: membershipParams,
  body: mergeInput,
  replies: { 200: mergeReply },
  async handle({ context, who, params, body }) {
    return jsonReply(await mergeEnterprise(context, who, { from: params.id, confirm: body.confirm }));
  },
});
