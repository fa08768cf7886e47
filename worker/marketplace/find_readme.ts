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
  let unknown: ReadmePlace | null = null;
  for (const place of readmePlaces(found.value.entry).slice(0, MOST_PLACES)) {
    const reply = await readAt(context, place);
    if (reply !== null && reply.value !== null) return ok(reply.value);
    if (reply?.isKnown !== true) unknown ??= place;
  }
  return err(unknown === null ? NONE : unavailable(unknown));
}

const NONE = apiError(
  'not_found',
  'no README of this entry can be had: neither its packages nor its repository have one that svc can read',
);

function unavailable({ of, url }: ReadmePlace): ApiError {
  const { hostname } = new URL(url);
  const message = `the README of ${of} cannot be read now, because ${hostname} does not answer or because too many were read in the last minute: try again in a minute`;
  return apiError('registry_unavailable', message);
}

/** Null if there is no answer in time. */
async function readAt(context: MarketplaceContext, place: ReadmePlace) {
  const { clock, registry } = context;
  const look = () => registry.readmes.find(place.url, clock.now());
  const work = () => fetchReadme(context, place);
  const flight = { key: `readme ${place.url}`, patienceMs: LIMITS.timeoutMs, look, work };
  return registry.flights.join(context, flight);
}

async function fetchReadme({ outbound, clock, registry }: MarketplaceContext, place: ReadmePlace): Promise<void> {
  const { readmes } = registry;
  if (!readmes.mayCall(clock.now())) return readmes.postpone(place.url, clock.now());
  const request = { method: 'GET', url: place.url, headers: HEADERS, body: null, limits: LIMITS, isStrangers: true };
  const reply = await outbound.call(request);
  const isBusy = reply.ok ? isTemporary(reply.value.status) : reply.error.reason === 'upstream_unreachable';
  if (isBusy) return readmes.postpone(place.url, clock.now());
  const readme = reply.ok && reply.value.status === 200 ? readReadme(place, reply.value.body) : null;
  readmes.note(place.url, readme, clock.now());
}

function isTemporary(status: number): boolean {
  return status === 429 || status >= 500;
}
