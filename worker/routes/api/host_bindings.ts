import {
  hostBindingHeaders,
  hostBindingInput,
  hostBindingRecord,
  hostBindingReplacement,
} from '../../../shared/wire/host_binding.ts';
import {
  explainInput,
  explainReply,
  hostBindingParams,
  hostBindingsPage,
  hostBindingsQuery,
} from '../../../shared/wire/host_bindings.ts';
import { explainRequest } from '../../services/bindings/explain.ts';
import {
  createHostBinding,
  getHostBinding as findHostBinding,
  listHostBindingPage,
  putHostBinding as replaceHostBinding,
  removeHostBinding,
} from '../../services/bindings/host_bindings.ts';
import { removalPreview } from '../../../shared/wire/removals.ts';
import { previewBindingRemoval } from '../../services/vault/removal_preview.ts';
import { expectedRevision } from '../http/expected_revision.ts';
import { forUser } from '../http/operation.ts';
import { changeReply, jsonReply } from '../http/replies.ts';

export const postHostBinding = forUser({
  summary: 'Bind a credential to a host',
  body: hostBindingInput,
  replies: { 201: hostBindingRecord },
  async handle({ context, who, body }) {
    return changeReply(await createHostBinding(context, who, body), (binding) => ({ status: 201, json: binding }));
  },
});

export const getHostBindings = forUser({
  summary: 'List host bindings',
  query: hostBindingsQuery,
  replies: { 200: hostBindingsPage },
  async handle({ context, who, query }) {
    return jsonReply(await listHostBindingPage(context, who, query));
  },
});

export const getHostBinding = forUser({
  summary: 'Get a host binding',
  params: hostBindingParams,
  replies: { 200: hostBindingRecord },
  async handle({ context, who, params }) {
    return jsonReply(await findHostBinding(context, who, params.id));
  },
});

export const putHostBinding = forUser({
  summary: 'Replace a host binding',
  description:
    'Replaces every field; omitted ones get their defaults. The owner cannot change. With the updated_at that you read as the revision, or in quotes as If-Match, the binding is replaced only if nobody has changed it since (409 conflict).',
  params: hostBindingParams,
  headers: hostBindingHeaders,
  body: hostBindingReplacement,
  replies: { 200: hostBindingRecord },
  async handle({ context, who, params, headers, body: { revision, ...input } }) {
    const expected = expectedRevision(headers['If-Match'], revision);
    if (!expected.ok) return expected;
    const replaced = await replaceHostBinding(context, who, params.id, input, expected.value);
    return changeReply(replaced, (binding) => ({ status: 200, json: binding }));
  },
});

export const deleteHostBinding = forUser({
  summary: 'Delete a host binding',
  params: hostBindingParams,
  replies: { 204: 'Deleted' },
  async handle({ context, who, params }) {
    return changeReply(await removeHostBinding(context, who, params.id), () => ({ status: 204 }));
  },
});

export const getHostBindingDeletion = forUser({
  summary: 'Show what deleting a host binding would do',
  description:
    'Names what would stop working, and what would apply instead. Changes nothing. Needs the scope of the deletion itself.',
  params: hostBindingParams,
  replies: { 200: removalPreview },
  async handle({ context, who, params }) {
    return jsonReply(await previewBindingRemoval(context, who, params.id));
  },
});

export const postExplain = forUser({
  summary: 'Explain what the proxy would do with a request',
  body: explainInput,
  replies: { 200: explainReply },
  async handle({ context, who, body }) {
    return jsonReply(await explainRequest(context, who, body));
  },
});
