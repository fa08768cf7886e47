import { enforceContract } from '../../shared/enforce/contract.ts';
import type { HostBinding } from '../../shared/model/host_binding.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { normaliseHost } from '../../shared/net/host.ts';
import { isRefusedIpLiteral } from '../../shared/net/ip_literal.ts';
import { compilePolicy, resolve } from '../../shared/resolve/resolve.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import { type HostBindingRecord, toHostBinding } from '../../shared/wire/host_binding.ts';
import type { ExplainInput, ExplainReply } from '../../shared/wire/host_bindings.ts';
import { referredSecrets } from '../store/secrets.ts';
import { type Caller, ownerId, visibleOwners } from './caller.ts';
import { allHostBindings } from './host_bindings.ts';
import type { ServiceContext } from './service_context.ts';

type Explained = ExplainReply['bindings'][number];
interface Request {
  readonly method: string;
  readonly host: string;
  readonly path: string;
}

/**
 * What the proxy would do with a caller's request and why, by the same functions the proxy decides with. It looks at
 * method, host and path; which of several bindings with sentinels is taken depends on what the request presents.
 */
export async function explainRequest(
  context: ServiceContext,
  caller: Caller,
  input: ExplainInput,
): Promise<Result<ExplainReply, ApiError>> {
  const request = parseRequest(input);
  if (!request.ok) return request;
  const records = await allHostBindings(context, visibleOwners(caller));
  const policy = compilePolicy(records.map((record) => toHostBinding(record)));
  const resolution = resolve(policy, request.value);
  if (resolution.kind === 'passthrough') return ok(explainPassthrough(request.value));
  const stored = await storedPaths(context, caller);
  const byId = new Map(records.map((record) => [record.id, record]));
  const bindings = resolution.bindings.map((binding) => {
    const isStored = stored.has(`${ownerId(caller, binding.credential.owner)} ${binding.credential.path}`);
    return explainBinding(binding, byId.get(binding.id), request.value, isStored);
  });
  return ok(explainBindings(request.value, bindings));
}

function parseRequest(input: ExplainInput): Result<Request, ApiError> {
  const url = URL.canParse(input.url) ? new URL(input.url) : null;
  if (url === null || url.protocol !== 'https:')
    return err(badUrl('is not an https URL: the proxy intercepts https alone'));
  if (url.username !== '' || url.password !== '') return err(badUrl('holds a user or password: give the URL without'));
  if (url.port !== '') return err(badUrl('has a port: the proxy serves port 443 alone'));
  const host = normaliseHost(url.hostname);
  return host.ok ? ok({ method: input.method, host: host.value, path: url.pathname }) : err(badUrl(host.error.message));
}

function badUrl(message: string): ApiError {
  return apiError('invalid_input', `url ${message}`, { fields: [{ field: 'url', message }] });
}

async function storedPaths(context: ServiceContext, caller: Caller): Promise<ReadonlySet<string>> {
  const secrets = await referredSecrets(context.database, visibleOwners(caller));
  return new Set(secrets.map((secret) => `${secret.ownerId} ${secret.path}`));
}

function explainPassthrough(request: Request): ExplainReply {
  const noBinding = `no host binding matches ${request.host}`;
  const base = { method: request.method, host: request.host, path: request.path, bindings: [] };
  if (isRefusedIpLiteral(request.host)) {
    const reasons = [noBinding, `${request.host} is an address that passthrough refuses`];
    return { ...base, decision: 'refused', code: 'passthrough_target_not_allowed', reasons };
  }
  return { ...base, decision: 'passthrough', code: null, reasons: [noBinding, 'the request is forwarded unmodified'] };
}

function explainBinding(
  binding: HostBinding,
  record: HostBindingRecord | undefined,
  request: Request,
  isStored: boolean,
): Explained {
  const contract = enforceContract(binding, { host: request.host, method: request.method, fields: [] });
  return {
    id: binding.id,
    host: binding.host,
    owner: binding.owner,
    scheme: binding.injection.scheme,
    emit_mechanism: binding.emit.mechanism,
    credential_ref: record?.credential_ref ?? '',
    credential_stored: isStored,
    refusal: contract.ok ? null : { code: contract.error.reason, message: contract.error.message },
  };
}

function explainBindings(request: Request, bindings: readonly Explained[]): ExplainReply {
  const reasons = bindings.flatMap((binding) => bindingReasons(request, binding));
  if (bindings.length > 1) reasons.push('the sentinel that the request presents chooses among the bindings');
  const code = bindings.every((binding) => refusalCode(binding) !== null) ? refusalCode(bindings[0]) : null;
  const decision = code === null ? 'binding' : 'refused';
  return { ...request, decision, reasons, bindings: [...bindings], code };
}

function refusalCode(binding: Explained | undefined): string | null {
  if (binding === undefined) return null;
  return binding.refusal?.code ?? (binding.credential_stored ? null : 'credential_unavailable');
}

function bindingReasons(request: Request, binding: Explained): string[] {
  const match = `${binding.owner} binding ${binding.id} for ${binding.host} matches ${request.host}`;
  if (binding.refusal !== null) return [match, binding.refusal.message];
  if (!binding.credential_stored) return [match, `${binding.credential_ref} is not stored: run "svc secret set"`];
  return [
    match,
    `its contract admits ${request.method}`,
    `${binding.credential_ref} is written with scheme ${binding.scheme}`,
  ];
}
