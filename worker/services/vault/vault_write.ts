import type { Secret } from '../../../shared/model/secret.ts';
import type { Statement } from '../../store/database.ts';
import { findSecret, insertSecret, replaceSecret } from '../../store/secrets.ts';
import { ownerName } from '../../kernel/caller.ts';
import { additionsOf, sealRow } from './secrets.ts';
import type { Addition } from '../../kernel/quotas.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';

/** A place below a reserved prefix of the vault, which only its own service writes to. */
export interface ReservedPlace {
  readonly enterpriseId: string;
  readonly ownerId: string;
  readonly path: string;
  readonly description: string;
}

/** Stores a value at a reserved place and replaces an earlier one. It is never too much: what is renewed must be stored. */
export async function vaultWrite(context: ServiceContext, place: ReservedPlace, value: Secret): Promise<Statement[]> {
  return (await planVaultWrite(context, place, value)).statements;
}

/** The same for what a person stores, with what it adds. */
export async function planVaultWrite(
  context: ServiceContext,
  place: ReservedPlace,
  value: Secret,
): Promise<{ readonly statements: Statement[]; readonly adds: Addition[] }> {
  const { enterpriseId, ownerId, path, description } = place;
  const before = await findSecret(context.database, { ownerId, path });
  const input = { ownerId, path, value, description, owner: ownerName(ownerId) };
  const row = await sealRow(context, { enterpriseId }, input, before);
  const statements = before === null ? insertSecret(context.database, row) : replaceSecret(context.database, row);
  return { statements, adds: additionsOf(row, before) };
}
