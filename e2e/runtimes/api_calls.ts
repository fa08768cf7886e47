import fc from 'fast-check';
import { expect } from 'vitest';
import { ERROR_STATUS, errorBody } from '../../shared/wire/errors.ts';
import type { DescribedOperation, Parameter } from './api_document.ts';

/** A call in its wire form. */
export interface WireCall {
  readonly operation: DescribedOperation;
  readonly target: string;
  /** Those that the description names. */
  readonly headers: Readonly<Record<string, string>>;
  /** The text of the body; null for none. */
  readonly body: string | null;
  readonly contentType: string;
}

/** Where the parameters of a call are. */
function placed(
  operation: DescribedOperation,
  parameters: readonly Parameter[],
): Pick<WireCall, 'operation' | 'target' | 'headers'> {
  const named = parameters.filter((each) => each.in === 'header');
  const headers = Object.fromEntries(named.map(({ name, value }) => [name, fieldValueOf(value)]));
  return { operation, target: targetOf(operation, parameters), headers };
}

/** A value as that of a header: what no client can send is left out. */
function fieldValueOf(value: string): string {
  return value.replace(/[^\x20-\x7e]/g, '').trim();
}

function targetOf(operation: DescribedOperation, parameters: readonly Parameter[]): string {
  let path = operation.path;
  const query = new URLSearchParams();
  for (const parameter of parameters) {
    if (parameter.in === 'path') path = path.replace(`{${parameter.name}}`, segmentOf(parameter.value));
    if (parameter.in === 'query') query.append(parameter.name, parameter.value);
  }
  return query.size === 0 ? path : `${path}?${query.toString()}`;
}

/** A value as a path segment. A segment of one or two dots is never sent: a client resolves it. */
function segmentOf(value: string): string {
  return encodeURIComponent(value).replace(/^\.{1,2}$/, '...');
}

/** Calls that fit the description. */
export function validCalls(operation: DescribedOperation): fc.Arbitrary<WireCall> {
  const bodies = operation.body?.map((body) => JSON.stringify(body)) ?? fc.constant(null);
  return fc.tuple(operation.parameters, bodies).map(([parameters, body]) => {
    return { ...placed(operation, parameters), body, contentType: 'application/json' };
  });
}

/** Invalid calls: in a parameter, a field, the whole body or its content type. */
export function brokenCalls(operation: DescribedOperation): fc.Arbitrary<WireCall> {
  const values = operation.parameters.chain((parameters) =>
    fc.tuple(...parameters.map((each) => brokenText.map((text) => ({ ...each, value: text || '%' })))),
  );
  const more = fc.array(fc.record({ name: brokenText, in: fc.constant('query' as const), value: brokenText }), {
    maxLength: 2,
  });
  const parameters = fc.oneof(
    operation.parameters,
    fc.tuple(values, more).map(([a, b]) => [...a, ...b]),
  );
  const contentTypes = fc.constantFrom('application/json', 'application/json', 'text/plain', 'application/json; x=');
  return fc.tuple(parameters, brokenBodies(operation), contentTypes).map(([given, body, contentType]) => {
    return { ...placed(operation, given), body, contentType };
  });
}

const brokenText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 30 }).map((text) => text.toWellFormed()),
  fc.constantFrom('..', '../../v1/me', '-1', '1e9', 'NaN', '\0', 'x'.repeat(2_000), 'sec_00000000000000000000000000'),
);

function brokenBodies(operation: DescribedOperation): fc.Arbitrary<string | null> {
  if (operation.body === null) return fc.constant(null);
  const mutated = fc
    .tuple(operation.body, fc.nat(), fc.jsonValue())
    .map(([body, at, value]) => mutate(body, at, value));
  return fc.oneof(
    mutated.map((body) => JSON.stringify(body)),
    fc.json(),
    fc.string({ unit: 'binary', maxLength: 50 }).map((text) => text.toWellFormed()),
    fc.constantFrom('', 'null', '[]', '{', '{"__proto__":{}}', '['.repeat(10_000), '"\\ud800"'),
  );
}

/** The body with one field removed, added or replaced. */
function mutate(body: unknown, at: number, value: unknown): unknown {
  if (typeof body !== 'object' || body === null) return value;
  const fields = Object.keys(body);
  const field = fields[at % (fields.length + 1)] ?? 'surplus';
  const { [field]: _, ...rest }: Record<string, unknown> = { ...body };
  return at % 2 === 0 ? rest : { ...rest, [field]: value };
}

function isPage(reply: Response): boolean {
  return reply.headers.get('content-type')?.startsWith('text/html') === true;
}

/** Expects what holds for every reply. */
export async function checkReply(call: WireCall, reply: Response): Promise<void> {
  expect(reply.status).toBeLessThan(500);
  if (reply.status >= 400 && call.operation.isOfBrowser && isPage(reply)) {
    expect(Object.values(ERROR_STATUS)).toContain(reply.status);
    expect(reply.headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(await reply.text()).not.toMatch(/<script(?! type="module" src="\/assets\/[\w.-]+"><)/);
    return;
  }
  if (reply.status >= 400) {
    const { error } = errorBody.strict().parse(await reply.json());
    expect(reply.status).toBe(ERROR_STATUS[error.code]);
    expect(reply.headers.get('svc-request-id')).toBe(error.request_id);
    expect(error.message.length).toBeLessThan(5_000);
    return;
  }
  const schema = call.operation.success(reply.status);
  expect([reply.status, schema]).not.toEqual([reply.status, undefined]);
  if (schema) expect(schema.safeParse(await reply.json()).error?.issues ?? []).toEqual([]);
  else await reply.body?.cancel();
}
