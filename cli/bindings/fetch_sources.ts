import { type SourceRecord, type SourcesPage, sourcesPage } from '../../shared/wire/secret_sources.ts';
import type { HttpClient } from '../terminal/http_client.ts';

/** The sources of minted and borrowed secrets, of one owner or of both. An earlier control plane knows no `limit`. */
export async function fetchSources(client: HttpClient, owner?: string): Promise<readonly SourceRecord[]> {
  const items: SourceRecord[] = [];
  let cursor: string | null = null;
  do {
    const query = { ...(owner !== undefined && { owner }), ...(cursor !== null && { cursor }) };
    const page: SourcesPage = await client.call('GET', '/v1/secret-sources', sourcesPage, { query });
    items.push(...page.items);
    cursor = page.items.length === 0 ? null : page.next_cursor;
  } while (cursor !== null);
  return items;
}
