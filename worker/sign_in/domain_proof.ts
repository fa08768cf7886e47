import { err, ok, type Result } from '../../shared/model/result.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import type { ServiceContext } from '../kernel/service_context.ts';

const PROOF_PATH = '/.well-known/svc-enterprise.txt';
const MAX_PROOF_BYTES = 10_000;

/**
 * Whether a domain belongs to this enterprise: a file on it must contain a line with the enterprise's id. Only then may
 * the enterprise route the domain's users to its own provider and admit them. `holder` is the enterprise that proved
 * the domain before. It keeps the domain while its own line is also there. Refuses with `domain_not_proven`,
 * `domain_taken`.
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
  return isOurs ? ok(undefined) : err(notProvenError(domain, url, enterpriseId));
}

export function domainTaken(domain: string): ApiError {
  return apiError('domain_taken', `${domain} belongs to another enterprise: remove it from domains`);
}

function notProvenError(domain: string, url: string, content: string): ApiError {
  const message = `${domain} is not proven to be yours: put a file with the line ${content} at ${url}, and try again`;
  return apiError('domain_not_proven', message, { domain, url, content });
}
