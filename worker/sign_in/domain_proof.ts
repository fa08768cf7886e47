import { err, ok, type Result } from '../../shared/model/result.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import type { ServiceContext } from '../kernel/service_context.ts';

const PROOF_PATH = '/.well-known/svc-enterprise.txt';
const MAX_PROOF_BYTES = 10_000;

/**
 * Whether a domain says that it is this enterprise's: a line of a file on it is the enterprise's id. Whoever cannot put a
 * file there cannot send its people to a provider of their own, nor take them in. `holder` is the enterprise that showed it
 * before: it keeps the domain for as long as its line is there too, and not when the domain has gone to others. Refuses with
 * `domain_not_proven`, `domain_taken`.
 */
export async function proveDomain(
  context: Pick<ServiceContext, 'outbound'>,
  domain: string,
  { enterpriseId, holder }: { readonly enterpriseId: string; readonly holder: string | null },
): Promise<Result<void, ApiError>> {
  const url = `https://${domain}${PROOF_PATH}`;
  const called = await context.outbound.call({ method: 'GET', url, headers: { accept: 'text/plain' }, body: null });
  const isRead = called.ok && called.value.status === 200 && called.value.body.length <= MAX_PROOF_BYTES;
  const text = isRead ? new TextDecoder().decode(called.value.body) : '';
  const lines = text.split('\n').map((line) => line.trim());
  const isOurs = lines.includes(enterpriseId);
  if (holder !== null && (!isOurs || lines.includes(holder))) return err(domainTaken(domain));
  return isOurs ? ok(undefined) : err(notProven(domain, url, enterpriseId));
}

export function domainTaken(domain: string): ApiError {
  return apiError('domain_taken', `${domain} is another enterprise's: take it out`);
}

function notProven(domain: string, url: string, content: string): ApiError {
  const message = `${domain} does not say that it is yours: put a file at ${url} with the line ${content}, and try again`;
  return apiError('domain_not_proven', message, { domain, url, content });
}
