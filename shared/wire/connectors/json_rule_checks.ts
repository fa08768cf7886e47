import { sendsBody, OPERATION_METHODS } from '../../model/connector.ts';

type Fields = Readonly<Record<string, unknown>>;
type Report = (path: readonly PropertyKey[], message: string) => void;

/** Reports problems between the rules for the JSON body of an operation, and with its method. */
export function checkJsonRules({ json, graphql, method }: Fields, report: Report): void {
  if (!Array.isArray(json)) return;
  if (graphql !== undefined) report(['json'], 'cannot be beside "graphql": the document decides there');
  const known = OPERATION_METHODS.find((each) => each === method);
  if (known !== undefined && !sendsBody(known)) report(['json'], `is given, but ${known} has no body`);
  const pointers = json.map((rule: unknown) => textOf(rule, 'pointer'));
  json.forEach((rule: unknown, index) => {
    const at: Report = (path, message) => report(['json', index, ...path], message);
    checkPlace(pointers, index, at);
    if (isFields(rule)) checkValues(rule, at);
  });
}

function checkPlace(pointers: readonly (string | null)[], index: number, report: Report): void {
  const pointer = pointers[index] ?? null;
  if (pointer === null) return;
  if (pointers.indexOf(pointer) < index)
    report(['pointer'], 'is that of another rule of this operation: write them as one');
  const above = pointers.find((other) => other !== null && pointer.startsWith(`${other}/`));
  if (above !== undefined) report(['pointer'], `is below ${above}, which another rule says is a value and no object`);
}

function checkValues({ equals, at_least: least, at_most: most }: Fields, report: Report): void {
  const hasRange = least !== undefined || most !== undefined;
  if (equals === undefined && !hasRange) report([], 'says nothing: write "equals", "at_least" or "at_most"');
  if (equals !== undefined && hasRange) report(['equals'], 'cannot be beside "at_least" and "at_most"');
  if (typeof least === 'number' && typeof most === 'number' && least > most)
    report(['at_least'], `is more than at_most, so no body fits: ${least} and ${most}`);
}

/** A text that is the same for rules that the same bodies satisfy, whatever their order; empty without rules. */
export function identifyJsonRules(json: unknown): string {
  if (!Array.isArray(json)) return '';
  const rules = json.filter(isFields).map(({ pointer, equals, at_least: least, at_most: most }) => {
    const values =
      equals === undefined
        ? []
        : [equals]
            .flat()
            .map((value) => JSON.stringify(value))
            .toSorted();
    return JSON.stringify([pointer, [...new Set(values)], least, most]);
  });
  return ` ${rules.toSorted().join(' ')}`;
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function textOf(value: unknown, name: string): string | null {
  const text = isFields(value) ? value[name] : null;
  return typeof text === 'string' ? text : null;
}
