import { enforceContract } from '../enforce/contract.ts';
import type { EmitMechanism, HostBinding, Injection, InjectionScheme, Owner } from '../model/host_binding.ts';
import { REFUSALS, type RefusalReason } from '../model/refusal.ts';
import { err, ok, type Result } from '../model/result.ts';
import { formatVaultReference } from '../model/vault_path.ts';
import { parseAuthority } from '../net/host.ts';
import { isRefusedIpLiteral } from '../net/ip_literal.ts';
import { resolve, type Policy } from '../resolve/resolve.ts';

/** A binding as an explanation shows it; `credential_ref` names the vault entry, never its value. */
export interface ExplainedBinding {
  readonly id: string;
  readonly owner: Owner;
  readonly host: string;
  readonly scheme: InjectionScheme;
  readonly emit_mechanism: EmitMechanism;
  readonly credential_ref: string;
}

/** Which path a request would take, and why; the names are those of the control API's reply. */
export interface Explanation {
  readonly path: 'binding' | 'passthrough' | 'refused';
  /** The refusal's code when `path` is `refused`, else null. */
  readonly reason: RefusalReason | null;
  /** The HTTP status of the refusal, else null. */
  readonly status: number | null;
  /** The bindings of the winning pattern; more than one when accounts are told apart by sentinels. */
  readonly bindings: readonly ExplainedBinding[];
  /** One sentence per step, in the order the proxy decides. */
  readonly why: readonly string[];
}

export interface ExplainError {
  readonly field: 'method' | 'url';
  /** The problem and the fix, as the rest of a sentence that begins with the field's name. */
  readonly message: string;
}

interface ExplainRequest {
  readonly method: string;
  readonly url: string;
}

/**
 * Explains which path a request would take through the proxy under a policy, and why, without sending anything. It
 * knows method and URL only: headers that change the outcome (sentinels, Upgrade, method overrides) are named in words.
 */
export function explainRequest(policy: Policy, request: ExplainRequest): Result<Explanation, ExplainError> {
  const methodFault = methodProblem(request.method);
  if (methodFault !== null) return err({ field: 'method', message: methodFault });
  const url = parseUrl(request.url);
  if (!url.ok) return url;
  const protocolRefusal = explainProtocol(url.value);
  if (protocolRefusal !== null) return ok(protocolRefusal);
  const authority = parseAuthority(url.value.host);
  if (!authority.ok) return urlError(`names a host that ${authority.error.message}`);
  return ok(explainHost(policy, request.method, authority.value.host, url.value.pathname));
}

function methodProblem(method: string): string | null {
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(method)) return 'is no HTTP method: write one such as GET or POST';
  if (method === 'CONNECT') return 'is CONNECT, which opens the tunnel: write the method of the request inside it';
  const upper = method.toUpperCase();
  const isMiswritten = method !== upper && ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE'].includes(upper);
  return isMiswritten ? `is "${method}", and methods are case-sensitive: write ${upper}` : null;
}

/** Never quotes the URL: its query may hold a secret. */
function parseUrl(text: string): Result<URL, ExplainError> {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return urlError('is no URL: write it in full, such as https://api.example.com/v1/items');
  }
  if (url.protocol === 'https:' || url.protocol === 'http:') return ok(url);
  if (url.protocol === 'wss:' || url.protocol === 'ws:') {
    return urlError(`is a WebSocket URL: write it with http${url.protocol === 'wss:' ? 's' : ''}://`);
  }
  return urlError('is no https URL: write https:// and the host');
}

/** What is refused before the host is looked at. */
function explainProtocol(url: URL): Explanation | null {
  if (url.protocol === 'http:') {
    return refused(
      'non_connect_proxy_request',
      [],
      ['The proxy carries HTTPS only: plain http through it is refused.'],
    );
  }
  if (url.port === '') return null;
  return refused(
    'connect_port_not_allowed',
    [],
    [`The proxy connects to port 443 only, and the URL names ${url.port}.`],
  );
}

function explainHost(policy: Policy, method: string, host: string, path: string): Explanation {
  const resolution = resolve(policy, { method, host, path });
  if (resolution.kind === 'passthrough') return explainPassthrough(policy, host);
  const { bindings } = resolution;
  const why = [matchSentence(host, bindings)];
  const judged = bindings.map((binding) => ({
    binding,
    contract: enforceContract(binding, { host, method, fields: [] }),
  }));
  for (const { binding, contract } of judged) {
    why.push(contract.ok ? injectionSentence(binding) : `Refused: ${contract.error.message}.`);
    if (contract.ok) why.push(...contractSentences(binding));
  }
  const decisive =
    judged.find(({ binding }) => binding === defaultBinding(bindings)) ??
    judged.find((one) => one.contract.ok) ??
    judged[0];
  if (bindings.length > 1) why.push(choiceSentence(bindings));
  if (decisive !== undefined && !decisive.contract.ok) return refused(decisive.contract.error.reason, bindings, why);
  return { path: 'binding', reason: null, status: null, bindings: bindings.map(explained), why };
}

function explainPassthrough(policy: Policy, host: string): Explanation {
  const why = [`No host binding matches ${host}.`];
  const [below] = policy.bindingsFor(`x.${host}`);
  if (below?.host === `*.${host}`) why.push(`${below.host} covers the hosts below ${host}, not ${host} itself.`);
  if (isRefusedIpLiteral(host)) {
    why.push(`${host} is an address of a private, local or reserved range, which passthrough refuses.`);
    return refused('passthrough_target_not_allowed', [], why);
  }
  why.push('The request is forwarded unmodified: no credential is added, and one the client sends itself stays.');
  return { path: 'passthrough', reason: null, status: null, bindings: [], why };
}

/** The binding that acts on a request without any sentinel; null when none does. */
function defaultBinding(bindings: readonly HostBinding[]): HostBinding | null {
  const plain = bindings.find((binding) => binding.emit.mechanism === 'inject');
  return plain ?? (bindings.length === 1 ? (bindings[0] ?? null) : null);
}

function matchSentence(host: string, bindings: readonly HostBinding[]): string {
  const [first] = bindings;
  const whose = first?.owner === 'enterprise' ? 'an enterprise' : 'a personal';
  const count = bindings.length === 1 ? `${whose} host binding` : `${bindings.length} ${first?.owner} host bindings`;
  return `${host} matches ${count} for ${first?.host}.`;
}

function injectionSentence(binding: HostBinding): string {
  const credential = formatVaultReference(binding.credential.path);
  const place = placeWords(binding.injection);
  if (binding.emit.mechanism === 'inject') {
    return `The credential ${credential} is added: ${place}; whatever the client sent in that place is removed first.`;
  }
  return `The credential ${credential} is put where the sentinel stands, or where nothing does: ${place}; another credential the client sends there is kept.`;
}

function placeWords(injection: Injection): string {
  switch (injection.scheme) {
    case 'bearer':
      return 'Authorization: Bearer <credential>';
    case 'basic':
      return `Authorization: Basic, with user name "${injection.username}"`;
    case 'header-template':
      return `the header ${injection.header}, by its template`;
    case 'query-param':
      return `the query parameter ${injection.queryParam}`;
    case 'sigv4-resign':
      return `an AWS version-4 signature for ${injection.service} in ${injection.region} by ${injection.accessKeyId}`;
  }
}

function contractSentences(binding: HostBinding): string[] {
  const sentences = [];
  if (binding.allowedHosts.length > 0) sentences.push('The host is in its allowed hosts.');
  if (binding.effect === 'read') {
    sentences.push('The method satisfies its effect "read"; Upgrade and method-override headers would be refused.');
  }
  return sentences;
}

function choiceSentence(bindings: readonly HostBinding[]): string {
  const start = 'The binding whose sentinel the request presents is used';
  return defaultBinding(bindings) === null
    ? `${start}; without one the request is forwarded unmodified.`
    : `${start}, and the one without a sentinel for every other request.`;
}

function refused(reason: RefusalReason, bindings: readonly HostBinding[], why: readonly string[]): Explanation {
  return { path: 'refused', reason, status: REFUSALS[reason].status, bindings: bindings.map(explained), why };
}

function explained(binding: HostBinding): ExplainedBinding {
  return {
    id: binding.id,
    owner: binding.owner,
    host: binding.host,
    scheme: binding.injection.scheme,
    emit_mechanism: binding.emit.mechanism,
    credential_ref: formatVaultReference(binding.credential.path),
  };
}

function urlError(message: string): Result<never, ExplainError> {
  return err({ field: 'url', message });
}
