import { err, ok, type Result } from '../../shared/model/result.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import { findEntry } from './find_entry.ts';
import type { MarketplaceContext } from './marketplace_context.ts';
import { type Readme, readmePlaces, type ReadmePlace, readReadme } from './readmes.ts';

const LIMITS = { maxReplyBytes: 4 * 1024 * 1024, timeoutMs: 5_000 };
const HEADERS = { accept: 'application/json, text/plain', 'user-agent': 'svc' };
/** Each is a call of another host. */
const MOST_PLACES = 3;

/**
 * The README of an entry, from its package or its repository (decision 0102). The publisher names the addresses, so they are called
 * as a stranger's. Refuses with `not_found`, `registry_unavailable`.
 */
export async function findReadme(
  context: MarketplaceContext,
  wanted: { readonly name: string; readonly version: string | null },
): Promise<Result<Readme, ApiError>> {
  const found = await findEntry(context, wanted, 'any');
  if (!found.ok) return found;
  for (const place of readmePlaces(found.value.entry).slice(0, MOST_PLACES)) {
    const readme = await readAt(context, place);
    if (readme !== null) return ok(readme);
  }
  const message =
    'no README of this entry can be had: neither its packages nor its repository have one that svc can read';
  return err(apiError('not_found', message));
}

async function readAt(context: MarketplaceContext, place: ReadmePlace): Promise<Readme | null> {
  const { clock, registry } = context;
  const look = () => registry.readmes.find(place.url, clock.now());
  const work = () => fetchReadme(context, place);
  const flight = { key: `readme ${place.url}`, patienceMs: LIMITS.timeoutMs, look, work };
  return (await registry.flights.join(context, flight))?.value ?? null;
}

async function fetchReadme({ outbound, clock, registry }: MarketplaceContext, place: ReadmePlace): Promise<void> {
  const { readmes } = registry;
  if (!readmes.mayCall(clock.now())) return readmes.postpone(place.url, clock.now());
  const request = { method: 'GET', url: place.url, headers: HEADERS, body: null, limits: LIMITS, isStrangers: true };
  const reply = await outbound.call(request);
  const readme = reply.ok && reply.value.status === 200 ? readReadme(place, reply.value.body) : null;
  readmes.note(place.url, readme, clock.now());
}
