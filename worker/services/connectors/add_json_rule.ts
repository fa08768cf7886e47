import type { FieldProblem } from '../../../shared/model/problem.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { connectorSpec, type ConnectorSpecRecord } from '../../../shared/wire/connectors/connector_spec.ts';
import { fieldProblems } from '../../../shared/wire/errors.ts';

/** A rule for the JSON body of an operation, as typed in a form: each text may be empty. */
interface TypedRule {
  readonly operation: string;
  readonly pointer: string;
  /** Values, one on each line: JSON, or else a text as it is. */
  readonly equals: string;
  readonly atLeast: string;
  readonly atMost: string;
}

/** The spec with one more rule for the JSON body of an operation. Its rules all have to fit. */
export function addJsonRule(
  spec: ConnectorSpecRecord,
  typed: TypedRule,
): Result<ConnectorSpecRecord, readonly FieldProblem[]> {
  const at = spec.operations.findIndex(({ name }) => name === typed.operation);
  if (at < 0)
    return err([{ field: 'rule_operation', message: 'is no operation of the spec: choose one of its names' }]);
  const rule = {
    pointer: typed.pointer,
    ...(typed.equals.trim() === '' ? {} : { equals: typed.equals.split('\n').filter(hasText).map(readValue) }),
    ...(typed.atLeast === '' ? {} : { at_least: readValue(typed.atLeast) }),
    ...(typed.atMost === '' ? {} : { at_most: readValue(typed.atMost) }),
  };
  const operations = spec.operations.map((each, index) =>
    index === at ? { ...each, json: [...(each.json ?? []), rule] } : each,
  );
  const changed = connectorSpec.safeParse({ ...spec, operations });
  return changed.success ? ok(changed.data) : err(fieldProblems(changed.error));
}

function hasText(line: string): boolean {
  return line.trim() !== '';
}

function readValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text.trim();
  }
}
