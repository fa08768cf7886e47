import type { ConnectorOperation } from '../connect/connector_index.ts';
import { recogniseGraphql } from '../connect/graphql_operation.ts';
import { listRuledPointers, recogniseJson } from '../connect/json_operation.ts';
import { enforceCertificate } from '../enforce/client_certificate.ts';
import { enforceContract } from '../enforce/contract.ts';
import { enforceGraphqlRequest } from '../enforce/graphql_request.ts';
import { enforceJsonRequest } from '../enforce/json_request.ts';
import type { ClientCertificate } from '../model/host_binding.ts';
import type { InstalledConnector } from '../model/connector.ts';
import type {
  CredentialRef,
  EmitMechanism,
  HostBinding,
  Injection,
  InjectionScheme,
  Owner,
} from '../model/host_binding.ts';
import type { RefusalReason } from '../model/refusal.ts';
import { isRegionSet } from '../model/region_set.ts';
import { err, ok, type Result } from '../model/result.ts';
import { MINTED_KEY_ID } from '../model/source_kind.ts';
import { formatVaultReference, parseSharedPath, SHARED_SECRET_MISSING } from '../model/vault_path.ts';
import { credentialsIssuedAt } from '../net/credential_issuer.ts';
import { parseAuthority } from '../net/host.ts';
import { hostOnPort, HTTPS_PORT, portOfHost } from '../net/host_port.ts';
import { isRefusedIpLiteral } from '../net/ip_literal.ts';
import type { ChosenSecret } from '../model/account_choice.ts';
import { decideAccounts, findDefault, narrowToChosen, type Accounts } from '../resolve/account_choice.ts';
import { parseAllowedHost, policyAdmitsHost } from '../resolve/admitted_host.ts';
import {
  compilePolicy,
  isOperation,
  resolve,
  type BindingResolution,
  type Policy,
  type Resolution,
} from '../resolve/resolve.ts';
import {
  connectorSentences,
  evasionSentence,
  explainOperation,
  GRAPHQL_SENTENCE,
  graphqlSentences,
  inactiveSentences,
  JSON_SENTENCE,
  jsonSentences,
  type ExplainedOperation,
} from './explain_operation.ts';
import type { FieldProblem } from '../model/problem.ts';
import { formatSize } from '../model/quotas/byte_size.ts';
import { listRequestLimits } from '../model/request_limits.ts';
import { toSentence } from '../model/sentence.ts';

/** A binding in an explanation; `credential_ref` names the vault entry, never its value. */
export interface ExplainedBinding {
  readonly id: string;
  readonly owner: Owner;
  readonly host: string;
  readonly scheme: InjectionScheme;
  readonly emit_mechanism: EmitMechanism;
  readonly credential_ref: string;
  /** False if a value that the binding refers to is not in its owner's vault. */
  readonly credential_stored: boolean;
  /** By a request without a placeholder, only by one with its placeholder, or never: the choice leaves it out. */
  readonly used: 'default' | 'placeholder' | 'not_chosen';
  /** The refusal by this binding's contract; null if it admits the request. */
  readonly refusal: { readonly code: RefusalReason; readonly message: string } | null;
}

/** The path that a request would take, and why; the names are those of the control API's reply. */
export interface Explanation {
  readonly decision: 'connector' | 'binding' | 'passthrough' | 'refused';
  /** Why: one sentence per step, in the order the proxy decides. */
  readonly reasons: readonly string[];
  readonly method: string;
  readonly host: string;
  /** Without its query. */
  readonly path: string;
  /** The bindings of the winning pattern; more than one when accounts are told apart by sentinels. */
  readonly bindings: readonly ExplainedBinding[];
  /** The connector operation of the request; null if there is none. */
  readonly operation: ExplainedOperation | null;
  /** The code of a refusal, else null. */
  readonly code: RefusalReason | null;
}

/** What the proxy would know for a user. */
export interface Known {
  /** Every binding of the user and of the user's enterprise. */
  readonly bindings: readonly HostBinding[];
  /** Every connector of the user and of the enterprise. */
  readonly connectors?: readonly InstalledConnector[];
  /** Whether the vault holds a value at a place of its owner. */
  readonly isStored: (ref: CredentialRef) => boolean;
  /** The user's client certificates. */
  readonly certificates?: readonly ClientCertificate[];
  /** The hosts and patterns that are not intercepted. */
  readonly tunnelled?: readonly string[];
  /** The secrets that the session chose. */
  readonly chosen?: readonly ChosenSecret[];
}

interface ExplainRequest {
  readonly method: string;
  readonly url: string;
  /** The GraphQL document in the body, for a request to a GraphQL endpoint. */
  readonly document?: string | undefined;
  /** The JSON body, for a request that it makes one operation or another. */
  readonly body?: string | undefined;
}

/** The request to explain, with its host in canonical form. */
interface Subject {
  readonly method: string;
  readonly host: string;
  readonly path: string;
}

/** Whether the host has operations that need an approval. */
type Beside = Pick<BindingResolution, 'besideApprovals'>;

/** Which bindings may be used, and which one without a placeholder. */
interface Account {
  readonly accounts: Accounts;
  readonly acting: HostBinding | null;
}

/** What was decided about a subject. */
type Decision = Omit<Explanation, keyof Subject>;

/**
 * Explains which path a request would take through the proxy, and why, without sending anything. It knows method and URL
 * only; headers that change the outcome (sentinels, Upgrade, method overrides) are described in words.
 */
export function explainRequest(known: Known, request: ExplainRequest): Result<Explanation, FieldProblem> {
  const methodFault = methodProblem(request.method);
  if (methodFault !== null) return err({ field: 'method', message: methodFault });
  const url = parseUrl(request.url);
  if (!url.ok) return url;
  const authority = parseAuthority(url.value.host);
  if (!authority.ok) return urlError(`names a host that ${authority.error.message}`);
  const host = hostOnPort(authority.value.host, authority.value.port ?? HTTPS_PORT);
  const subject = { method: request.method, host, path: url.value.pathname };
  const query = url.value.search === '' ? null : url.value.search.slice(1);
  const sent = { query, document: request.document ?? null, body: request.body ?? null };
  const decision = explainPlainHttp(url.value) ?? explainHost(known, subject, sent);
  return ok({ ...subject, ...decision });
}

function methodProblem(method: string): string | null {
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(method)) return 'is not an HTTP method: write one such as GET or POST';
  if (method === 'CONNECT') return 'is CONNECT, which opens the tunnel: write the method of the request inside it';
  const upper = method.toUpperCase();
  const isMiswritten = method !== upper && ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE'].includes(upper);
  return isMiswritten ? `is "${method}", and methods are case-sensitive: write ${upper}` : null;
}

/** Never quotes the URL: its query may contain a secret. */
function parseUrl(text: string): Result<URL, FieldProblem> {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return urlError('is not a URL: write it in full, such as https://api.example.com/v1/items');
  }
  if (url.username !== '' || url.password !== '') {
    return urlError('holds a user name or password: write it without, and bind that credential to the host');
  }
  if (url.protocol === 'https:' || url.protocol === 'http:') return ok(url);
  if (url.protocol === 'wss:' || url.protocol === 'ws:') {
    return urlError(`is a WebSocket URL: write it with http${url.protocol === 'wss:' ? 's' : ''}://`);
  }
  return urlError('is not an https URL: write https:// and the host');
}

/** The refusal that comes before the host is looked at. */
function explainPlainHttp(url: URL): Decision | null {
  if (url.protocol !== 'http:') return null;
  return refuse('non_connect_proxy_request', [
    'Plain http is refused, unless the person who runs svc has allowed it for the session (--plain-http HOST). It never has a credential, and is refused for a host with a binding, a connector or a client certificate.',
  ]);
}

/** What a request carries beside its method and path. */
interface Sent {
  readonly query: string | null;
  readonly document: string | null;
  readonly body: string | null;
}

function explainHost(known: Known, subject: Subject, sent: Sent): Decision {
  const policy = compilePolicy(known.bindings, known.connectors, known.tunnelled, known.certificates);
  const resolution = resolve(policy, { ...subject, query: sent.query });
  const decision = explainPath(known, { policy, resolution }, subject, sent);
  return withCertificate(known, { policy, resolution }, subject, decision);
}

/** A policy, and what it decides about a request. */
interface Resolved {
  readonly policy: Policy;
  readonly resolution: Resolution;
}

function explainPath(known: Known, { policy, resolution }: Resolved, subject: Subject, sent: Sent): Decision {
  const { query } = sent;
  const decide = (match: ConnectorOperation): Decision =>
    withAccount(known, policy, { ...subject, match }, decideOperation(known, match, query));
  if (resolution.kind === 'connector') return decide(resolution.match);
  if (resolution.kind === 'graphql')
    return decideByBody(decide, graphqlRule(resolution.candidates, { ...subject, ...sent }));
  if (resolution.kind === 'json') return decideByBody(decide, jsonRule(resolution.candidates, { ...subject, ...sent }));
  if (resolution.kind === 'ambiguous_target')
    return refuse('ambiguous_target', [evasionSentence(policy.connectors, subject)]);
  const decision =
    resolution.kind === 'binding'
      ? explainBindings(known, resolution, subject)
      : policy.isTunnelled(subject.host)
        ? explainTunnelled(subject.host)
        : explainPassthrough(known, policy, subject.host);
  const reasons = [
    ...connectorSentences(policy.connectors, subject),
    ...inactiveSentences(known.connectors ?? [], subject.host),
  ];
  return { ...decision, reasons: [...reasons, ...decision.reasons] };
}

/** What the client certificate of the host adds: it opens the connection of a request that is not refused, or refuses it. */
function withCertificate(
  known: Known,
  { policy, resolution }: Resolved,
  { method, host }: Subject,
  decision: Decision,
): Decision {
  const certificate = policy.certificateFor(host);
  if (certificate === null || decision.decision === 'refused') return decision;
  const besideApprovals = !isOperation(resolution) && policy.connectors.approvalHosts.has(host);
  const contract = enforceCertificate(certificate, { host, method, fields: [], besideApprovals });
  if (!contract.ok) {
    const reason = `Refused: ${contract.error.message}.`;
    return { ...decision, decision: 'refused', code: contract.error.reason, reasons: [...decision.reasons, reason] };
  }
  const reference = formatVaultReference(certificate.credential.path);
  if (resolution.kind === 'connector' && resolution.match.connector.spec.credential.login !== undefined) {
    const reason = `The client certificate ${reference} (${certificate.id}) is not presented: requests of a login have none.`;
    return { ...decision, reasons: [...decision.reasons, reason] };
  }
  const missing = known.isStored(certificate.credential)
    ? ''
    : ' It is not stored, so the proxy would answer 503 credential_unavailable.';
  const strict = decision.decision === 'passthrough' ? STRICT_PASSTHROUGH : '';
  const reason = `The upstream connection is opened with the client certificate ${reference} (${certificate.id}).${strict}${missing}`;
  return { ...decision, reasons: [...decision.reasons, reason] };
}

const STRICT_PASSTHROUGH =
  ' So the request has to name this host, and cookies and authentication challenges are removed from the reply.';

/** An operation with the credential of another account than the one that was chosen for the host is refused. A login has only one. */
function withAccount(
  known: Known,
  policy: Policy,
  { host, match }: Subject & { readonly match: ConnectorOperation },
  decision: Decision,
): Decision {
  const { spec, credential } = match.connector;
  const { chosen } = accountsOf(known, host, policy.bindingsFor(host));
  if (chosen.length === 0 || spec.credential.login !== undefined) return decision;
  if (chosen.some(({ owner, path }) => owner === credential.owner && path === credential.path)) return decision;
  const reason = `Refused: ${chosenWords(chosen)}, and the connector has another credential.`;
  return { ...decision, decision: 'refused', code: 'account_not_chosen', reasons: [...decision.reasons, reason] };
}

/** The choice of a session that starts now: it is about a host only while a binding there has a chosen secret. */
function accountsOf({ chosen = [], bindings: all }: Known, host: string, bindings: readonly HostBinding[]): Accounts {
  const accounts = narrowToChosen(decideAccounts(chosen, all), host, bindings);
  return accounts ?? { bindings, byDefault: 'as_ever', others: [], chosen: [] };
}

function chosenWords(chosen: readonly ChosenSecret[]): string {
  const texts = chosen.map(({ path, by, from }) => {
    const who = by === 'option' ? '--use' : `the ${by} ${from ?? ''}`.trim();
    return `${formatVaultReference(path)} (chosen by ${who})`;
  });
  return `the session uses ${texts.join(', ')} for this host`;
}

function decideOperation(known: Known, match: ConnectorOperation, query: string | null): Decision {
  const isStored = known.isStored(match.connector.credential);
  const { shown, code, reasons } = explainOperation(match, query, isStored);
  if (code !== null) return { ...refuse(code, reasons), operation: shown };
  return { decision: 'connector', code: null, bindings: [], operation: shown, reasons };
}

/** How the body decides which operation a request is. */
interface BodyRule {
  readonly sentence: string;
  readonly contract: Result<unknown, { readonly reason: RefusalReason; readonly message: string }>;
  /** There is no body yet to decide by. */
  readonly isOpen: boolean;
  readonly operations: readonly string[];
  readonly recognise: () => Result<ConnectorOperation, { readonly reason: RefusalReason; readonly message: string }>;
}

/** If the body decides: lists the operations while there is none to decide by. */
function decideByBody(
  decide: (match: ConnectorOperation) => Decision,
  { sentence, contract, isOpen, operations, recognise }: BodyRule,
): Decision {
  if (!contract.ok) return refuse(contract.error.reason, [sentence, `Refused: ${contract.error.message}.`]);
  if (isOpen) {
    const reasons = [sentence, ...operations];
    return { decision: 'connector', code: null, bindings: [], operation: null, reasons };
  }
  const match = recognise();
  if (match.ok) return decide(match.value);
  return refuse(match.error.reason, [sentence, ...operations, `Refused: ${match.error.message}.`]);
}

/** At a GraphQL endpoint the document decides. */
function graphqlRule(candidates: readonly ConnectorOperation[], { document, ...request }: Subject & Sent): BodyRule {
  const hasBody = document !== null;
  const body = hasBody ? [new TextEncoder().encode(JSON.stringify({ query: document }))] : [];
  return {
    sentence: GRAPHQL_SENTENCE,
    contract: enforceGraphqlRequest({ ...request, fields: JSON_FIELDS, hasBody }),
    isOpen: !hasBody && request.method !== 'GET' && candidates.length > 0,
    operations: graphqlSentences(candidates),
    recognise: () => recogniseGraphql(candidates, request, body),
  };
}

function jsonRule(candidates: readonly ConnectorOperation[], { body, ...request }: Subject & Sent): BodyRule {
  const sent = { ...request, fields: JSON_FIELDS, hasBody: body !== null };
  return {
    sentence: JSON_SENTENCE,
    contract: enforceJsonRequest(sent, listRuledPointers(candidates)),
    isOpen: body === null,
    operations: jsonSentences(candidates),
    recognise: () => recogniseJson(candidates, [new TextEncoder().encode(body ?? '')]),
  };
}

const JSON_FIELDS = [{ name: 'content-type', value: 'application/json' }];

function explainBindings(
  known: Known,
  { bindings: matching, besideApprovals }: BindingResolution,
  subject: Subject,
): Decision {
  const accounts = accountsOf(known, subject.host, matching);
  const acting = actingBinding(accounts);
  const all = matching.map((binding) => judge(known, binding, { ...subject, besideApprovals, accounts, acting }));
  const verdicts = all.filter(({ binding }) => accounts.bindings.includes(binding));
  const reasons = [
    matchSentence(subject.host, matching),
    ...overrideSentences(known, matching),
    ...accountSentences(accounts),
    ...verdicts.flatMap((verdict) => bindingSentences(verdict, subject)),
    ...(verdicts.length > 1 ? [choiceSentence(acting)] : []),
  ];
  const bindings = all.map(({ shown }) => shown);
  const refusal = decisiveRefusal(verdicts, acting);
  if (refusal !== null) return { ...refuse(refusal, reasons), bindings };
  return { decision: 'binding', code: null, bindings, operation: null, reasons };
}

function accountSentences({ chosen, others }: Accounts): string[] {
  if (chosen.length === 0) return [];
  const words = chosenWords(chosen);
  const left = [...new Set(others.map(({ credential }) => formatVaultReference(credential.path)))];
  return [
    toSentence(words),
    ...(left.length === 0
      ? []
      : [`A request with the placeholder of ${left.join(', ')} is refused (account_not_chosen).`]),
  ];
}

/** The outcome if one given binding is used. */
interface Verdict {
  readonly binding: HostBinding;
  readonly shown: ExplainedBinding;
  /** References of the binding without a stored value. */
  readonly missing: readonly CredentialRef[];
  readonly besideApprovals: boolean;
}

/** The contract comes before the credential. Whether the credential is stored is checked anyway, for display. */
function judge(known: Known, binding: HostBinding, subject: Subject & Beside & Account): Verdict {
  const missing = referencesOf(binding).filter((ref) => !known.isStored(ref));
  const { besideApprovals } = subject;
  return { binding, missing, besideApprovals, shown: show(binding, subject, missing.length === 0) };
}

function referencesOf({ credential, injection }: HostBinding): CredentialRef[] {
  const isWithToken = injection.scheme === 'sigv4-resign' && injection.sessionTokenRef !== undefined;
  return isWithToken ? [credential, injection.sessionTokenRef] : [credential];
}

function show(
  binding: HostBinding,
  { host, method, besideApprovals, accounts, acting }: Subject & Beside & Account,
  isStored: boolean,
): ExplainedBinding {
  const contract = enforceContract(binding, { host, method, fields: [], besideApprovals });
  return {
    id: binding.id,
    owner: binding.owner,
    host: binding.host,
    scheme: binding.injection.scheme,
    emit_mechanism: binding.emit.mechanism,
    credential_ref: formatVaultReference(binding.credential.path),
    credential_stored: isStored,
    used: accounts.others.includes(binding) ? 'not_chosen' : binding === acting ? 'default' : 'placeholder',
    refusal: contract.ok ? null : { code: contract.error.reason, message: contract.error.message },
  };
}

/** The refusal of the binding that is used without a sentinel; if there is none, a refusal that all bindings share. */
function decisiveRefusal(verdicts: readonly Verdict[], acting: HostBinding | null): RefusalReason | null {
  const deciding = acting === null ? verdicts : verdicts.filter(({ binding }) => binding === acting);
  const codes = deciding.map((verdict) => refusalCode(verdict));
  return codes.includes(null) ? null : (codes[0] ?? null);
}

function refusalCode({ shown }: Verdict): RefusalReason | null {
  return shown.refusal?.code ?? (shown.credential_stored ? null : 'credential_unavailable');
}

function explainPassthrough({ bindings, isStored }: Known, policy: Policy, host: string): Decision {
  const reasons = [`No binding matches ${host}.`];
  if (portOfHost(host) !== HTTPS_PORT && !policyAdmitsHost(policy, isStored, host)) {
    const way = parseAllowedHost(host).ok
      ? `, or the person who runs svc: svc allow ${host}, or --allow ${host} for one session`
      : '';
    reasons.push(
      `The proxy connects to another port than ${HTTPS_PORT} only if a binding or a connector names the host with it${way}.`,
    );
    return refuse('connect_port_not_allowed', reasons);
  }
  const below = bindings.find((binding) => binding.host === `*.${host}`);
  if (below !== undefined) reasons.push(`${below.host} covers the hosts below ${host}, not ${host} itself.`);
  if (isRefusedIpLiteral(host)) {
    reasons.push(`${host} is an address in a private, local or reserved range, which passthrough refuses.`);
    return refuse('passthrough_target_not_allowed', reasons);
  }
  reasons.push(
    'The request is forwarded unmodified: no credential is added, and one that the client sends itself stays.',
  );
  return { decision: 'passthrough', code: null, bindings: [], operation: null, reasons };
}

function explainTunnelled(host: string): Decision {
  const reasons = [
    `${host} is on the list of hosts that are not intercepted (svc tunnel list), and neither a binding nor a connector has it.`,
    'Its connection is not opened: no credential is added, nothing is checked, and only the host and the byte counts are recorded.',
    `A sealed session reaches it only if it names the host (--allow ${host}), and a plan's step never does.`,
  ];
  return { decision: 'passthrough', code: null, bindings: [], operation: null, reasons };
}

/** The binding that is used without a sentinel; null if there is none. */
function actingBinding({ byDefault, bindings }: Accounts): HostBinding | null {
  if (byDefault === 'none') return null;
  return byDefault === 'as_ever' ? findDefault(bindings) : byDefault;
}

function matchSentence(host: string, bindings: readonly HostBinding[]): string {
  const [first] = bindings;
  const whose = first?.owner === 'enterprise' ? 'an enterprise' : 'a personal';
  const count = bindings.length === 1 ? `${whose} binding` : `${bindings.length} ${first?.owner} bindings`;
  return `${host} matches ${count} for ${first?.host}.`;
}

/** The proxy never uses an enterprise binding if the user has one for the same pattern. */
function overrideSentences({ bindings }: Known, [winner]: readonly HostBinding[]): string[] {
  const overridden = bindings.some((other) => other.host === winner?.host && other.owner !== winner.owner);
  return overridden ? [`It overrides the enterprise's own for ${winner?.host}.`] : [];
}

function bindingSentences({ binding, shown, missing, besideApprovals }: Verdict, { host, path }: Subject): string[] {
  if (shown.refusal !== null) return [`Refused: ${shown.refusal.message}.`];
  if (missing.length > 0) return missing.map((ref) => missingSentence(ref));
  const issued = credentialsIssuedAt(host, path);
  return [
    injectionSentence(binding),
    ...contractSentences(binding, besideApprovals),
    ...(issued === null ? [] : [issuedSentence(issued)]),
  ];
}

function missingSentence({ owner, path }: CredentialRef): string {
  const option = owner === 'enterprise' ? ' --owner enterprise' : '';
  if (parseSharedPath(path) !== null) return `Refused: ${SHARED_SECRET_MISSING}`;
  return `Refused: the ${owner} secret ${formatVaultReference(path)} is not stored; store it with "svc secret set ${path}${option}".`;
}

function injectionSentence(binding: HostBinding): string {
  const credential = formatVaultReference(binding.credential.path);
  const place = placeWords(binding.injection);
  if (binding.emit.mechanism === 'inject') {
    return `The credential ${credential} is added: ${place}; everything the client sent in that place is removed first.`;
  }
  return `The credential ${credential} replaces the sentinel, or is added if there is none: ${place}; another credential that the client sends there is kept.`;
}

/** Describes each scheme's place. */
const PLACES: { readonly [S in InjectionScheme]: (injection: Extract<Injection, { scheme: S }>) => string } = {
  bearer: () => 'Authorization: Bearer <credential>',
  basic: ({ username }) => `Authorization: Basic, with user name "${username}"`,
  'header-template': ({ header }) => `the header ${header}, by its template`,
  'query-param': ({ queryParam }) => `the query parameter ${queryParam}`,
  'sigv4-resign': ({ accessKeyId, region, service }) =>
    `an AWS version-${isRegionSet(region) ? '4a' : '4'} signature for ${service} in ${region} by ${accessKeyId === MINTED_KEY_ID ? 'the minted key' : accessKeyId}`,
};

function placeWords<S extends InjectionScheme>(injection: Extract<Injection, { scheme: S }>): string {
  const scheme: S = injection.scheme;
  return PLACES[scheme](injection);
}

function contractSentences(binding: HostBinding, besideApprovals: boolean): string[] {
  const sentences = [];
  sentences.push(cookieSentence(binding), ...limitSentences(binding));
  if (binding.allowedHosts.length > 0) sentences.push('The host is in its allowed hosts.');
  if (binding.effect === 'read') {
    sentences.push('The method satisfies its effect "read"; Upgrade and method-override headers would be refused.');
  } else if (binding.effect === undefined && besideApprovals) {
    sentences.push(
      `The binding has no effect, and the host has operations that need an approval: it counts as "read" there until it is given one, such as with "svc binding effect ${binding.id} write".`,
    );
  }
  return sentences;
}

function issuedSentence(issued: string): string {
  return `Its reply may contain ${issued}, which the agent can then use: only the added credential is masked, and the log records the kinds of what the agent receives.`;
}

function limitSentences({ bytesPerDay, ...others }: HostBinding): string[] {
  const requests = listRequestLimits(others).join(' and ');
  const ofBytes = bytesPerDay === undefined ? '' : formatSize(bytesPerDay);
  return [
    requests === '' ? '' : `At most ${requests} get the credential on each machine; ${REFUSED}`,
    ofBytes === ''
      ? ''
      : `After ${ofBytes} a day of bodies, of requests and replies together on each machine, ${REFUSED}`,
  ].filter((sentence) => sentence !== '');
}

const REFUSED = 'further requests are refused (request_limit_reached).';

function cookieSentence({ keepCookies }: HostBinding): string {
  return keepCookies === true
    ? 'Cookies and authentication challenges of the reply are kept (keep_cookies): with a session cookie the agent can act without the proxy.'
    : 'Cookies and authentication challenges are removed from the reply.';
}

function choiceSentence(acting: HostBinding | null): string {
  const start = 'The binding whose sentinel the request presents is used';
  if (acting === null) return `${start}; without one the request is forwarded unmodified.`;
  return acting.emit.mechanism === 'inject'
    ? `${start}, and the one without a sentinel for every other request.`
    : `${start}, and ${formatVaultReference(acting.credential.path)} for every other request.`;
}

function refuse(code: RefusalReason, reasons: readonly string[]): Decision {
  return { decision: 'refused', code, bindings: [], operation: null, reasons };
}

function urlError(message: string): Result<never, FieldProblem> {
  return err({ field: 'url', message });
}
