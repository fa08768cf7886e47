import { err, ok, type Result } from '../../model/result.ts';
import { quoteWord } from '../dangers/danger.ts';
import { isIpLiteral } from '../../net/ip_literal.ts';
import type { RegistryRemote, RegistryEntry } from '../registry_entry.ts';
import type { InputTarget, NotInstallable, PlanField, PlanUrl, Template } from './plan.ts';
import type { PlanBuilder } from './plan_builder.ts';

/** The URL and headers of a remote server. */
interface RemoteParts {
  readonly url: PlanUrl;
  readonly headers: readonly PlanField[];
}

const HTTPS = 'https://';

/**
 * The address and headers of a remote server. Only https, because credentials are sent to it. A secret may be in a header or
 * in the query, never in the host or the path, which are logged and shown.
 */
export function remoteParts(
  remote: RegistryRemote,
  entry: RegistryEntry,
  builder: PlanBuilder,
): Result<RemoteParts, NotInstallable> {
  const url = urlOf(remote, entry, builder);
  if (!url.ok) return url;
  const headers = builder.headersOf(remote.headers);
  return headers.ok ? ok({ url: url.value, headers: headers.value }) : headers;
}

function urlOf(remote: RegistryRemote, entry: RegistryEntry, builder: PlanBuilder): Result<PlanUrl, NotInstallable> {
  const problem = addressProblem(remote.url);
  if (problem !== null) return err(problem);
  const rest = remote.url.slice(HTTPS.length);
  const authorityEnd = rest.search(/[/?]/);
  const authority = authorityEnd < 0 ? rest : rest.slice(0, authorityEnd);
  const after = authorityEnd < 0 ? '' : rest.slice(authorityEnd);
  const queryStart = after.indexOf('?');
  const part = (text: string, target: InputTarget) => {
    const at = { target, goesTo: 'url', name: entry.name, credentialName: null };
    return builder.inputs.templateOf(text, remote.variables, false, at);
  };
  const parts = {
    authority: part(authority, 'url_host'),
    path: part(queryStart < 0 ? after : after.slice(0, queryStart), 'url_path'),
    query: queryStart < 0 ? null : part(after.slice(queryStart + 1), 'url_query'),
  };
  const secrets = new Set(builder.inputs.inputs.filter(({ secret }) => secret).map(({ name }) => name));
  const hasSecret = (template: Template | null) =>
    template?.some((piece) => piece.kind === 'input' && secrets.has(piece.input)) === true;
  if (parts.authority === null || parts.path === null || hasSecret(parts.authority) || hasSecret(parts.path)) {
    return refuse('secret_in_url', 'Its address has a secret in its host or path, where it would be logged and shown.');
  }
  if (queryStart >= 0 && parts.query === null) {
    return refuse('secret_in_url', 'Its address has a secret in the middle of a word, where it cannot be told apart.');
  }
  return ok({ authority: parts.authority, path: parts.path, query: parts.query });
}

/** What is wrong with the address, checked with a word in place of each variable. */
function addressProblem(url: string): NotInstallable | null {
  const shown = quoteWord(url);
  const sample = url.replaceAll(/\$?\{[^{}]*\}/g, 'x');
  if (!/^[!-~]+$/.test(url) || !URL.canParse(sample))
    return { reason: 'bad_url', message: `Its address ${shown} is not a URL.` };
  const parsed = new URL(sample);
  if (isLocal(parsed.hostname)) {
    const message = `Its address ${shown} is on the machine that uses it, or in its network: start the server there and add it by hand.`;
    return { reason: 'local_url', message };
  }
  if (parsed.protocol !== 'https:' || !url.startsWith(HTTPS)) {
    return {
      reason: 'insecure_url',
      message: `Its address ${shown} is not https: credentials would be sent for anyone to read.`,
    };
  }
  if (
    parsed.username !== '' ||
    parsed.password !== '' ||
    url.includes('#') ||
    url.includes('\\') ||
    /[{}]/.test(sample)
  ) {
    return { reason: 'bad_url', message: `Its address ${shown} has more than a host, a path and a query.` };
  }
  return null;
}

/** Only public names: an IP literal is in the local network, or hides its owner. */
function isLocal(hostname: string): boolean {
  const host = hostname.toLowerCase();
  return (
    isIpLiteral(host) ||
    host === 'localhost' ||
    /\.(?:localhost|local|internal|lan|home\.arpa)$/.test(host) ||
    !host.includes('.')
  );
}

function refuse(reason: NotInstallable['reason'], message: string): Result<never, NotInstallable> {
  return err({ reason, message });
}
