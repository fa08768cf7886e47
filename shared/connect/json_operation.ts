import type { JsonRule, JsonScalar } from '../model/connector.ts';
import { refusal, type Refusal } from '../model/refusal.ts';
import { err, ok, type Result } from '../model/result.ts';
import type { ConnectorOperation } from './connector_index.ts';
import { satisfies } from './json_rules.ts';
import { readRuledValues, type RuledValues } from './json_values.ts';
import { parseUniqueJsonBytes } from './unique_json.ts';

/**
 * Decides which operation a request is from its JSON body (docs/decisions/0101). Without a body it has no members. Refuses
 * with `json_unreadable` if not every server reads the ruled values the same way, and with `json_operation_not_allowed` if
 * the body is none of the candidates or several of them.
 */
export function recogniseJson(
  candidates: readonly ConnectorOperation[],
  body: readonly Uint8Array[],
): Result<ConnectorOperation, Refusal> {
  const isEmpty = body.every((chunk) => chunk.length === 0);
  const parsed = isEmpty ? ok<unknown>({}) : parseUniqueJsonBytes(body);
  const values = parsed.ok ? readRuledValues(listRules(candidates), parsed.value) : parsed;
  if (!values.ok) return err(refusal('json_unreadable', `the request is refused: its body ${values.error}`));
  const fitting = findFitting(candidates, values.value);
  const [only] = fitting;
  if (only !== undefined && fitting.length === 1) return ok(only);
  return err(refusal('json_operation_not_allowed', `the request is refused: ${describeChoice(candidates, fitting)}`));
}

/** Within one connector, operations whose rules hold beat the one without rules. */
function findFitting(candidates: readonly ConnectorOperation[], values: RuledValues): readonly ConnectorOperation[] {
  const connectors = [...new Set(candidates.map(({ connector }) => connector))];
  return connectors.flatMap((connector) => {
    const own = candidates.filter((each) => each.connector === connector);
    const held = own.filter(({ operation: { json } }) => json?.every((rule) => holds(rule, values.get(rule.pointer))));
    return held.length > 0 ? held : own.filter(({ operation: { json } }) => json === undefined);
  });
}

/** No rule holds for a value that is not there. */
function holds(rule: JsonRule, value: JsonScalar | undefined): boolean {
  return value !== undefined && satisfies(rule, value);
}

function describeChoice(candidates: readonly ConnectorOperation[], fitting: readonly ConnectorOperation[]): string {
  const pointers = listRuledPointers(candidates).join(', ');
  if (fitting.length === 0) return `no operation of a connector has the values that its body has at ${pointers}`;
  const operations = fitting.map(({ connector, operation }) => `${operation.name} of ${connector.spec.fqn}`);
  return `the values of its body at ${pointers} belong to several operations, ${operations.join(' and ')}`;
}

function listRules(operations: readonly ConnectorOperation[]): readonly JsonRule[] {
  return operations.flatMap(({ operation }) => operation.json ?? []);
}

/** The places in a body that decide which of the operations a request is. */
export function listRuledPointers(operations: readonly ConnectorOperation[]): readonly string[] {
  return [...new Set(listRules(operations).map(({ pointer }) => pointer))];
}

/** The bodies of an operation, in words: `/amount at most 100, /currency "eur" or "usd"`. */
export function jsonWords(rules: readonly JsonRule[] | undefined): string {
  if (rules === undefined) return 'any other body';
  return rules.map((rule) => `${rule.pointer} ${valueWords(rule)}`).join(', ');
}

function valueWords({ equals, atLeast, atMost }: JsonRule): string {
  if (equals !== undefined) return equals.map((value) => JSON.stringify(value)).join(' or ');
  if (atLeast === undefined) return `at most ${atMost}`;
  return atMost === undefined ? `at least ${atLeast}` : `${atLeast} to ${atMost}`;
}
