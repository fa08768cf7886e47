import { err, ok, type Result } from '../../shared/model/result.ts';
import { readInstallation } from '../store/installation.ts';
import { schemaStatus } from '../store/migrate.ts';
import type { ServiceContext } from '../kernel/service_context.ts';
import { counted } from '../../shared/model/sentence.ts';

/**
 * Whether this program may receive calls; the error is a sentence. A schema newer than the program is allowed, because
 * the next version may have been started beside it. Throws if the database does not answer.
 */
export async function describeReadiness(
  context: ServiceContext,
): Promise<Result<{ readonly status: 'ready'; readonly schema: number }, string>> {
  if (context.stopping.aborted) return err('this program is stopping: call another one');
  const { schema, pending } = await schemaStatus(context.database.client);
  if (pending > 0) return err(`the database lacks ${counted(pending, 'step')} of its schema: run "svc db migrate"`);
  const mark = (await readInstallation(context.database)).get('vault_key_mark') ?? context.vault.keyMark;
  if (mark !== context.vault.keyMark) return err('the master key was changed: restart this program with the new one');
  return ok({ status: 'ready', schema });
}
