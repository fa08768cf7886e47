import { Secret } from '../../../shared/model/secret.ts';
import { err, type Result } from '../../../shared/model/result.ts';
import type { Owner } from '../../../shared/model/host_binding.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import { hostBindingInput, hostBindingRecord } from '../../../shared/wire/host_binding.ts';
import { hostBindingsPage } from '../../../shared/wire/host_bindings.ts';
import { secretInput, secretRecord, secretsPage } from '../../../shared/wire/secrets.ts';
import { revisionHeaders } from '../../../shared/net/http/if_match.ts';
import {
  joinInput,
  joinReply,
  managedBindingParams,
  managedListQuery,
  managedSecretParams,
  serviceAccountChange,
  serviceAccountInput,
  serviceAccountParams,
  serviceAccountRecord,
  serviceAccountsPage,
  serviceAccountsQuery,
} from '../../../shared/wire/service_accounts.ts';
import {
  createHostBinding,
  getHostBinding,
  listHostBindingPage,
  removeHostBinding,
} from '../../services/bindings/host_bindings.ts';
import { joinSidecar } from '../../tokens/join/join_sidecar.ts';
import {
  createServiceAccount,
  listServiceAccountPage,
  manageServiceAccount,
  putServiceAccount as replaceServiceAccount,
  readServiceAccount,
  removeServiceAccount,
} from '../../services/service_accounts/service_accounts.ts';
import { listSecretPage, removeSecret, storeSecret } from '../../services/vault/secrets.ts';
import { expectedRevision } from '../http/expected_revision.ts';
import { forAnyone, forUser } from '../http/operation.ts';
import { changeReply, createdReply, emptyReply, jsonReply } from '../http/replies.ts';

export const postJoin = forAnyone({
  summary: 'Join as a service account, with the OIDC token of a job',
  description:
    'Enrols a sidecar that ends by itself. The token is checked with the keys of its issuer, and used once. Refused with join_refused, whose details.reason says why.',
  body: joinInput,
  replies: { 201: joinReply },
  async handle({ context, body, clientAddress }) {
    return createdReply(await joinSidecar(context, body, clientAddress));
  },
});

export const postServiceAccount = forUser({
  summary: 'Make a service account, which jobs join as',
  description:
    'For admins. Only tokens of the issuer, for the audience, with these claims may join. Rules that jobs of strangers could satisfy are refused.',
  body: serviceAccountInput,
  replies: { 201: serviceAccountRecord },
  async handle({ context, who, body }) {
    return createdReply(await createServiceAccount(context, who, body));
  },
});

export const getServiceAccounts = forUser({
  summary: 'List the service accounts of your enterprise',
  description: 'For admins.',
  query: serviceAccountsQuery,
  replies: { 200: serviceAccountsPage },
  async handle({ context, who, query }) {
    return jsonReply(await listServiceAccountPage(context, who, query));
  },
});

export const getServiceAccount = forUser({
  summary: 'Get a service account',
  params: serviceAccountParams,
  replies: { 200: serviceAccountRecord },
  async handle({ context, who, params }) {
    return jsonReply(await readServiceAccount(context, who, params.id));
  },
});

export const putServiceAccount = forUser({
  summary: 'Replace the policy of a service account, or suspend it',
  description:
    'Replaces every field; omitted ones get their defaults. Its sidecars end. With the revision that you read, or in quotes as If-Match, the account is replaced only if nobody has changed it since (409 conflict).',
  params: serviceAccountParams,
  headers: revisionHeaders,
  body: serviceAccountChange,
  replies: { 200: serviceAccountRecord },
  async handle({ context, who, params, headers, body: { revision, ...input } }) {
    const expected = expectedRevision(headers['If-Match'], revision);
    if (!expected.ok) return expected;
    return jsonReply(await replaceServiceAccount(context, who, params.id, input, expected.value));
  },
});

export const deleteServiceAccount = forUser({
  summary: 'Remove a service account, with its secrets and bindings',
  description: 'Its sidecars end.',
  params: serviceAccountParams,
  replies: { 204: 'Removed' },
  async handle({ context, who, params }) {
    return emptyReply(await removeServiceAccount(context, who, params.id));
  },
});

/** Through the path of a service account only what is its own can be written. */
function ownedElsewhere(owner: Owner): Result<never, ApiError> | null {
  if (owner === 'personal') return null;
  const message = 'is the enterprise: leave it out, because what is written here is the service account’s own';
  return err(apiError('invalid_input', `owner ${message}`, { fields: [{ field: 'owner', message }] }));
}

export const postManagedSecret = forUser({
  summary: 'Store a secret of a service account',
  description: 'For admins. Creates the secret at the path, or replaces its value. No reply ever contains a value.',
  params: serviceAccountParams,
  body: secretInput,
  replies: { 201: secretRecord, 200: secretRecord },
  async handle({ context, who, params, body }) {
    const stored = await manageServiceAccount(
      context,
      who,
      params.id,
      async (manager) =>
        ownedElsewhere(body.owner) ?? storeSecret(context, manager, { ...body, value: new Secret(body.value) }),
    );
    return changeReply(stored, ({ secret, created }) => ({ status: created ? 201 : 200, json: secret }));
  },
});

export const getManagedSecrets = forUser({
  summary: 'List the secrets of a service account, without their values',
  params: serviceAccountParams,
  query: managedListQuery,
  replies: { 200: secretsPage },
  async handle({ context, who, params, query }) {
    const page = await manageServiceAccount(context, who, params.id, (manager) =>
      listSecretPage(context, manager, { ...query, owner: 'personal' }),
    );
    return jsonReply(page);
  },
});

export const deleteManagedSecret = forUser({
  summary: 'Delete a secret of a service account by its path or id',
  params: managedSecretParams,
  replies: { 204: 'Deleted' },
  async handle({ context, who, params }) {
    const removed = await manageServiceAccount(context, who, params.id, (manager) =>
      removeSecret(context, manager, { owner: 'personal', pathOrId: params.path }),
    );
    return changeReply(removed, () => ({ status: 204 }));
  },
});

export const postManagedBinding = forUser({
  summary: 'Bind a credential to a host, for a service account',
  params: serviceAccountParams,
  body: hostBindingInput,
  replies: { 201: hostBindingRecord },
  async handle({ context, who, params, body }) {
    const created = await manageServiceAccount(
      context,
      who,
      params.id,
      async (manager) => ownedElsewhere(body.owner) ?? createHostBinding(context, manager, body),
    );
    return changeReply(created, (binding) => ({ status: 201, json: binding }));
  },
});

export const getManagedBindings = forUser({
  summary: 'List the bindings of a service account',
  params: serviceAccountParams,
  query: managedListQuery,
  replies: { 200: hostBindingsPage },
  async handle({ context, who, params, query }) {
    const page = await manageServiceAccount(context, who, params.id, (manager) =>
      listHostBindingPage(context, manager, { ...query, owner: 'personal' }),
    );
    return jsonReply(page);
  },
});

export const deleteManagedBinding = forUser({
  summary: 'Delete a binding of a service account',
  params: managedBindingParams,
  replies: { 204: 'Deleted' },
  async handle({ context, who, params }) {
    const removed = await manageServiceAccount(context, who, params.id, async (manager) => {
      // The enterprise's bindings are found here too.
      const found = await getHostBinding(context, manager, params.binding);
      if (!found.ok) return found;
      return ownedElsewhere(found.value.owner) ?? removeHostBinding(context, manager, params.binding);
    });
    return changeReply(removed, () => ({ status: 204 }));
  },
});
