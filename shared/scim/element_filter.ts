import type { Filter, FilterValue } from './filter.ts';

/** An element of a multi-valued attribute, with canonical names. */
export type Element = Readonly<Record<string, unknown>>;

/** Whether an element fits the filter of a PATCH path. Text is compared without case, as all sub-attributes here are. */
export function fitsElement(filter: Filter, element: Element): boolean {
  if (filter.kind === 'and') return fitsElement(filter.left, element) && fitsElement(filter.right, element);
  if (filter.kind === 'or') return fitsElement(filter.left, element) || fitsElement(filter.right, element);
  if (filter.kind === 'not') return !fitsElement(filter.of, element);
  if (filter.kind === 'element') return false;
  const value = subOf(element, filter.name.attribute);
  return filter.kind === 'present' ? hasValue(value) : compares(value, filter.operator, filter.value);
}

function subOf(element: Element, name: string): unknown {
  if (Object.hasOwn(element, name)) return element[name];
  const key = Object.keys(element).find((each) => each.toLowerCase() === name);
  return key === undefined ? undefined : element[key];
}

function hasValue(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '';
}

function compares(actual: unknown, operator: string, wanted: FilterValue): boolean {
  if (wanted === null || !hasValue(actual)) return (operator === 'ne') === (hasValue(actual) !== (wanted !== null));
  // Directories also write booleans as strings: primary eq "True".
  const [left, right] = [String(actual).toLowerCase(), String(wanted).toLowerCase()];
  switch (operator) {
    case 'eq':
      return left === right;
    case 'ne':
      return left !== right;
    case 'co':
      return left.includes(right);
    case 'sw':
      return left.startsWith(right);
    case 'ew':
      return left.endsWith(right);
    case 'gt':
      return left > right;
    case 'ge':
      return left >= right;
    case 'lt':
      return left < right;
    default:
      return left <= right;
  }
}

/** The sub-attributes that a filter of `eq` and `and` fixes, for an element that is yet to be made; null for others. */
export function elementOf(filter: Filter): Readonly<Record<string, FilterValue>> | null {
  if (filter.kind === 'compare') return filter.operator === 'eq' ? { [filter.name.attribute]: filter.value } : null;
  if (filter.kind !== 'and') return null;
  const [left, right] = [elementOf(filter.left), elementOf(filter.right)];
  return left === null || right === null ? null : { ...left, ...right };
}
