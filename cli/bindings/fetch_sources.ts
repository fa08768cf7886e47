import { type SourceRecord, sourcesPage } from '../../shared/wire/secret_sources.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import type { OwnerOption } from '../command_options.ts';

/** The sources of minted secrets, of one owner or of both. */
export async function fetchSources({
  context,
  options,
}: Pick<Call<OwnerOption>, 'context' | 'options'>): Promise<readonly SourceRecord[]> {
  const query = options.owner === undefined ? {} : { owner: options.owner };
  return (await controlClient(context, options).call('GET', '/v1/secret-sources', sourcesPage, { query })).items;
}
