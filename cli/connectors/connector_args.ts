import type { OperationInput } from '../../shared/model/connector.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { didYouMean } from '../../shared/model/near_match.ts';
import { parseJson } from '../../shared/model/json.ts';

type Args = Readonly<Record<string, unknown>>;

/**
 * Builds the args of a run from `--arg name=value` (converted to the type of the input) and the JSON object of `--args`. The
 * errors name the arg and never quote its value.
 */
export function parseTypedArgs(
  inputs: readonly OperationInput[],
  pairs: readonly string[],
  whole: Args,
): Result<Args, readonly string[]> {
  const problems: string[] = [];
  const texts = new Map<string, string[]>();
  for (const pair of pairs) {
    const at = pair.indexOf('=');
    if (at <= 0) problems.push('--arg has no "=": write --arg name=value');
    else texts.set(pair.slice(0, at), [...(texts.get(pair.slice(0, at)) ?? []), pair.slice(at + 1)]);
  }
  const args: Record<string, unknown> = { ...whole };
  for (const [name, values] of texts) {
    const typed = parseTypedArg(inputs, name, values);
    if (!typed.ok) problems.push(`--arg ${name} ${typed.error}`);
    else if (Object.hasOwn(whole, name)) problems.push(`--arg ${name} is also in --args: give it once`);
    else args[name] = typed.value;
  }
  return problems.length > 0 ? err(problems) : ok(args);
}

function parseTypedArg(
  inputs: readonly OperationInput[],
  name: string,
  values: readonly string[],
): Result<unknown, string> {
  const input = inputs.find((each) => each.name === name);
  if (input === undefined) {
    const names = inputs.map((each) => each.name);
    return err(
      `is not an input of this operation${didYouMean(name, names) || `: it has ${names.join(', ') || 'none'}`}`,
    );
  }
  const [first = ''] = values;
  if (input.type === 'array') return listArg(values);
  if (values.length > 1) return err('is given more than once: only a list takes several values');
  if (input.type === 'string') return ok(first);
  if (input.type === 'boolean') return booleanArg(first);
  return input.type === 'object' ? objectArg(first) : numberArg(first);
}

/** A JSON array such as `["a", 1]`, or the items one by one, as strings. */
function listArg(values: readonly string[]): Result<unknown, string> {
  const [only = ''] = values;
  if (values.length > 1 || !only.startsWith('[')) return ok(values);
  const parsed = parseJson(only);
  return Array.isArray(parsed)
    ? ok(parsed)
    : err('is not a JSON array: write ["a", "b"], or give --arg once for each item');
}

function booleanArg(text: string): Result<boolean, string> {
  return text === 'true' || text === 'false' ? ok(text === 'true') : err('must be true or false');
}

function numberArg(text: string): Result<number, string> {
  const isNumber = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(text);
  return isNumber ? ok(Number(text)) : err('must be a number');
}

function objectArg(text: string): Result<unknown, string> {
  const parsed = parseJson(text);
  return isObject(parsed) ? ok(parsed) : err('must be a JSON object, such as {"name": "x"}');
}

/** The JSON object of `--args`. The parser's own message would quote the text. */
export function parseArgs(text: string): Result<Args, string> {
  const parsed = parseJson(text);
  return isObject(parsed) ? ok({ ...parsed }) : err('--args is not a JSON object: write {"name": "value"}');
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
