import { type Explanation, explainRequest as explain } from '../../shared/explain/explain.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import { toHostBinding } from '../../shared/wire/host_binding.ts';
import type { ExplainInput } from '../../shared/wire/host_bindings.ts';
import { referredSecrets } from '../store/secrets.ts';
import { type Caller, ownerName, visibleOwners } from './caller.ts';
import { allHostBindings } from './host_bindings.ts';
import type { ServiceContext } from './service_context.ts';

/** What the proxy would do with a caller's request and why. Refuses with `invalid_input`. */
export async function explainRequest(
  context: ServiceContext,
  caller: Caller,
  input: ExplainInput,
): Promise<Result<Explanation, ApiError>> {
  const owners = visibleOwners(caller);
  const records = await allHostBindings(context, owners);
  const secrets = await referredSecrets(context.database, owners);
  const stored = new Set(secrets.map(({ ownerId, path }) => `${ownerName(ownerId)} ${path}`));
  const bindings = records.map((record) => toHostBinding(record));
  const explained = explain({ bindings, isStored: ({ owner, path }) => stored.has(`${owner} ${path}`) }, input);
  if (explained.ok) return ok(explained.value);
  const { field, message } = explained.error;
  return err(apiError('invalid_input', `${field} ${message}`, { fields: [{ field, message }] }));
}
