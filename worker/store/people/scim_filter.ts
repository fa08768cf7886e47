import { type SQL, sql } from 'drizzle-orm';
import type { Filter, FilterValue, Operator } from '../../../shared/scim/filter.ts';

/** How an attribute is compared: as text, without case unless `exact`, as a time, as a boolean, or as one of a list. */
type Column =
  | { readonly kind: 'text' | 'exact' | 'time' | 'boolean'; readonly of: SQL }
  | { readonly kind: 'list'; readonly from: SQL; readonly columns: Columns };
/** The attributes of a resource by lower-case name, with a dot before a sub-attribute. */
export type Columns = Readonly<Record<string, Column>>;

const NEVER = sql`0`;
const ALWAYS = sql`1`;

/**
 * The condition that a filter stands for. Values are parameters, and names choose among columns, so no text of a filter
 * becomes SQL. An attribute without a column has no value.
 */
export function filterCondition(filter: Filter, columns: Columns): SQL {
  if (filter.kind === 'and') {
    return sql`(${filterCondition(filter.left, columns)} AND ${filterCondition(filter.right, columns)})`;
  }
  if (filter.kind === 'or') {
    return sql`(${filterCondition(filter.left, columns)} OR ${filterCondition(filter.right, columns)})`;
  }
  if (filter.kind === 'not') return sql`(NOT ${filterCondition(filter.of, columns)})`;
  if (filter.kind === 'element') return elementCondition(columnOf(columns, filter.attribute), filter.of);
  const { attribute, sub } = filter.name;
  const column = columnOf(columns, sub === null ? attribute : `${attribute}.${sub}`);
  if (column !== undefined) return nameCondition(column, filter);
  const list = columnOf(columns, attribute);
  if (list?.kind !== 'list' || sub === null) return filter.kind === 'compare' && isNotEqual(filter) ? ALWAYS : NEVER;
  return elementCondition(list, { ...filter, name: { attribute: sub, sub: null } });
}

/** Names come from the caller, so those of every object are none of ours. */
function columnOf(columns: Columns, name: string): Column | undefined {
  return Object.hasOwn(columns, name) ? columns[name] : undefined;
}

type Leaf = Extract<Filter, { kind: 'present' | 'compare' }>;

function isNotEqual({ operator, value }: Extract<Filter, { kind: 'compare' }>): boolean {
  return operator === 'ne' ? value !== null : operator === 'eq' && value === null;
}

function elementCondition(list: Column | undefined, of: Filter): SQL {
  if (list?.kind !== 'list') return NEVER;
  return sql`EXISTS (SELECT 1 FROM ${list.from} WHERE ${filterCondition(of, list.columns)})`;
}

function nameCondition(column: Column, leaf: Leaf): SQL {
  if (column.kind !== 'list') {
    const { of } = column;
    const present = sql`coalesce(${of}, '') <> ''`;
    return leaf.kind === 'present' ? sql`(${present})` : sql`coalesce(${comparison(column, leaf)}, 0)`;
  }
  // A list without a sub-attribute is compared by the values of its elements.
  if (leaf.kind === 'present') return sql`EXISTS (SELECT 1 FROM ${column.from})`;
  return elementCondition(column, { ...leaf, name: { attribute: 'value', sub: null } });
}

function comparison(
  { kind, of }: Exclude<Column, { kind: 'list' }>,
  { operator, value }: Extract<Filter, { kind: 'compare' }>,
): SQL {
  if (value === null) return operator === 'ne' ? sql`coalesce(${of}, '') <> ''` : sql`coalesce(${of}, '') = ''`;
  if (kind === 'boolean') return booleanComparison(of, operator, value);
  // What has no value differs from every value.
  if (operator === 'ne') return sql`coalesce(${textComparison(kind, of, 'eq', value)}, 0) = 0`;
  return textComparison(kind, of, operator, value);
}

function booleanComparison(of: SQL, operator: Operator, value: FilterValue): SQL {
  const wanted = String(value).toLowerCase() === 'true' ? 1 : 0;
  if (operator === 'eq') return sql`${of} = ${wanted}`;
  return operator === 'ne' ? sql`${of} <> ${wanted}` : NEVER;
}

function textComparison(
  kind: 'text' | 'exact' | 'time',
  of: SQL,
  operator: Exclude<Operator, 'ne'>,
  value: FilterValue,
): SQL {
  const text = kind === 'time' ? timeOf(String(value)) : String(value);
  // A column's own collation decides about its case, so that its index serves.
  if (operator === 'eq') return sql`${of} = ${text}`;
  const [left, right] = kind === 'text' ? [sql`lower(${of})`, sql`lower(${text})`] : [of, sql`${text}`];
  return TEXT_COMPARISONS[operator](left, right);
}

const TEXT_COMPARISONS: Readonly<Record<Exclude<Operator, 'ne' | 'eq'>, (left: SQL, right: SQL) => SQL>> = {
  co: (left, right) => sql`instr(${left}, ${right}) > 0`,
  sw: (left, right) => sql`substr(${left}, 1, length(${right})) = ${right}`,
  ew: (left, right) => sql`substr(${left}, length(${left}) - length(${right}) + 1) = ${right}`,
  gt: (left, right) => sql`${left} > ${right}`,
  ge: (left, right) => sql`${left} >= ${right}`,
  lt: (left, right) => sql`${left} < ${right}`,
  le: (left, right) => sql`${left} <= ${right}`,
};

/** A time in the format of stored times. */
function timeOf(text: string): string {
  const time = Date.parse(text);
  return Number.isNaN(time) ? text : new Date(time).toISOString();
}
