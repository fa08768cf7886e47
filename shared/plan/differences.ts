import { canonicalJson } from '../audit/canonical_json.ts';

/** A place where two JSON values differ; `undefined` if it is missing there. */
export interface Difference {
  /** For example `steps[1].hosts[0]`; '' for the whole value. */
  readonly place: string;
  readonly from: unknown;
  readonly to: unknown;
}

/** The places where two JSON values differ, as deep as both have the same type, in the order of the first. Empty if they are equal. */
export function differences(from: unknown, to: unknown, place = ''): readonly Difference[] {
  if (Array.isArray(from) && Array.isArray(to)) return compareLists(from, to, place);
  if (isRecord(from) && isRecord(to)) return compareRecords(from, to, place);
  return isSame(from, to) ? [] : [{ place, from, to }];
}

function compareLists(from: readonly unknown[], to: readonly unknown[], place: string): readonly Difference[] {
  const length = Math.max(from.length, to.length);
  return Array.from({ length }, (_, index) => differences(from[index], to[index], `${place}[${index}]`)).flat();
}

function compareRecords(
  from: Readonly<Record<string, unknown>>,
  to: Readonly<Record<string, unknown>>,
  place: string,
): readonly Difference[] {
  const keys = [...new Set([...Object.keys(from), ...Object.keys(to)])];
  return keys.flatMap((key) => differences(from[key], to[key], place === '' ? key : `${place}.${key}`));
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isSame(from: unknown, to: unknown): boolean {
  if (from === undefined || to === undefined) return from === to;
  return canonicalJson(from) === canonicalJson(to);
}
