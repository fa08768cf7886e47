import {
  operationHosts,
  sendsBody,
  type InstalledConnector,
  type Operation,
  type OperationInput,
} from '../model/connector.ts';
import { err, ok, type Result } from '../model/result.ts';
import { didYouMean } from '../model/near_match.ts';
import { argProblem } from './arg_problem.ts';
import type { FieldProblem } from '../model/problem.ts';

/** An upstream request made from an operation and its args, without a credential. */
export interface OperationRequestParts {
  readonly method: Operation['method'];
  readonly host: string;
  /** Percent-encoded, without the query. */
  readonly path: string;
  /** Without the `?`; null when there is none. */
  readonly query: string | null;
  /** A JSON text; null if the operation sends no body. */
  readonly body: string | null;
}

type Args = Readonly<Record<string, unknown>>;

/**
 * Makes the upstream request of an operation run (specification section 4, Connector operations). Path inputs fill the
 * template, each as one segment. The other args become the query of GET, DELETE and HEAD, and the JSON body of POST, PATCH
 * and PUT. The host is the first allowed one unless another allowed one is requested. Every problem is reported, not only
 * the first.
 */
export function buildOperationRequest(
  { spec }: Pick<InstalledConnector, 'spec'>,
  operation: Operation,
  args: unknown,
  wantedHost?: string,
): Result<OperationRequestParts, readonly FieldProblem[]> {
  const given = argsOf(args);
  if (given === null) return err([{ field: 'args', message: 'must be an object with a value for each argument' }]);
  const hosts = operationHosts(spec, operation);
  const host = wantedHost === undefined ? hosts[0] : hosts.find((allowed) => allowed === wantedHost.toLowerCase());
  const problems = argProblems(operation, given);
  if (host === undefined)
    problems.push({ field: 'host', message: `is not allowed here: use one of ${hosts.join(', ')}` });
  if (host === undefined || problems.length > 0) return err(problems);
  return ok({
    method: operation.method,
    host,
    path: fillPath(operation, given),
    query: queryOf(operation, given),
    body: bodyOf(operation, given),
  });
}

function argsOf(args: unknown): Args | null {
  if (args === undefined || args === null) return {};
  return typeof args === 'object' && !Array.isArray(args) ? { ...args } : null;
}

function argProblems(operation: Operation, args: Args): FieldProblem[] {
  const known = operation.inputs.map((input) => input.name);
  const problems: FieldProblem[] = [];
  for (const name of Object.keys(args)) {
    if (known.includes(name)) continue;
    problems.push({
      field: `args.${name.slice(0, 64)}`,
      message: `is no argument of ${operation.name}${didYouMean(name, known)}`,
    });
  }
  for (const input of operation.inputs) {
    const message = inputProblem(input, args);
    if (message !== null) problems.push({ field: `args.${input.name}`, message });
  }
  return problems;
}

function inputProblem(input: OperationInput, args: Args): string | null {
  const value = valueOf(args, input);
  if (value !== undefined) return argProblem(input, value);
  return input.required
    ? `is missing: ${input.type === 'string' ? 'a text' : `${articleFor(input.type)} ${input.type}`}`
    : null;
}

function articleFor(word: string): string {
  return /^[aio]/.test(word) ? 'an' : 'a';
}

/** Only the caller's own properties count. `null` is a valid value in a body and nowhere else. */
function valueOf(args: Args, input: OperationInput): unknown {
  const value = Object.hasOwn(args, input.name) ? args[input.name] : undefined;
  return value === null && input.in !== 'body' ? undefined : value;
}

function fillPath(operation: Operation, args: Args): string {
  return operation.path.replaceAll(/\{([^{}/]*)\}/g, (_, name: string) => encodeValue(text(args[name])));
}

function queryOf(operation: Operation, args: Args): string | null {
  const pairs = operation.inputs.filter((input) => input.in === 'query').flatMap((input) => queryPairs(input, args));
  return pairs.length === 0 ? null : pairs.join('&');
}

/** A list is the same name several times. */
function queryPairs(input: OperationInput, args: Args): string[] {
  const value = valueOf(args, input);
  if (value === undefined) return [];
  const values: readonly unknown[] = Array.isArray(value) ? value : [value];
  return values.map((each) => `${encodeValue(input.name)}=${encodeValue(text(each))}`);
}

function bodyOf(operation: Operation, args: Args): string | null {
  if (!sendsBody(operation.method)) return null;
  const inputs = operation.inputs.filter((input) => input.in === 'body' && valueOf(args, input) !== undefined);
  return JSON.stringify(Object.fromEntries(inputs.map((input) => [input.name, args[input.name]])));
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Everything but unreserved characters (RFC 3986 section 2.3) is encoded, so that a value is never more than one segment or value. */
function encodeValue(value: string): string {
  return encodeURIComponent(value).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
