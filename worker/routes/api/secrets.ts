import { Secret } from '../../../shared/model/secret.ts';
import {
  ownerQuery,
  secretCheckInput,
  secretCheckReply,
  secretInput,
  secretParams,
  secretRecord,
  secretsPage,
  secretsQuery,
} from '../../../shared/wire/secrets.ts';
import { removalPreview } from '../../../shared/wire/removals.ts';
import { previewSecretRemoval } from '../../services/vault/removal_preview.ts';
import { checkValues } from '../../services/vault/secret_check.ts';
import { listSecretPage, removeSecret, storeSecret } from '../../services/vault/secrets.ts';
import { forUser } from '../http/operation.ts';
import { changeReply, jsonReply } from '../http/replies.ts';

export const postSecret = forUser({
  summary: 'Store a secret',
  description: 'Creates the secret at the path, or replaces its value. No reply ever contains a value.',
  body: secretInput,
  replies: { 201: secretRecord, 200: secretRecord },
  async handle({ context, who, body }) {
    const stored = await storeSecret(context, who, { ...body, value: new Secret(body.value) });
    return changeReply(stored, ({ secret, created }) => ({ status: created ? 201 : 200, json: secret }));
  },
});

export const getSecrets = forUser({
  summary: 'List secrets, without their values',
  query: secretsQuery,
  replies: { 200: secretsPage },
  async handle({ context, who, query }) {
    return jsonReply(await listSecretPage(context, who, query));
  },
});

export const deleteSecret = forUser({
  summary: 'Delete a secret by its path or id',
  description:
    'Refused with secret_in_use while a binding, client certificate, connector or MCP server refers to it; GET /v1/secrets/{path}/deletion names these first. Slashes of the path may be percent-encoded or not.',
  query: ownerQuery,
  params: secretParams,
  replies: { 204: 'Deleted' },
  async handle({ context, who, query, params }) {
    const removed = await removeSecret(context, who, { owner: query.owner, pathOrId: params.path });
    return changeReply(removed, () => ({ status: 204 }));
  },
});

export const getSecretDeletion = forUser({
  summary: 'Show what deleting a secret would do',
  description:
    'Names what refers to the secret and what would stop working. Changes nothing. Needs the scope of the deletion itself.',
  query: ownerQuery,
  params: secretParams,
  replies: { 200: removalPreview },
  async handle({ context, who, query, params }) {
    return jsonReply(await previewSecretRemoval(context, who, { owner: query.owner, pathOrId: params.path }));
  },
});

export const postSecretCheck = forUser({
  summary: 'Check which values are stored secrets',
  description:
    'For a program that is about to pass values on, such as an environment: tells which of them equal a stored secret of you or your enterprise. The values are not stored.',
  body: secretCheckInput,
  replies: { 200: secretCheckReply },
  async handle({ context, who, body }) {
    return jsonReply(await checkValues(context, who, body.values));
  },
});
