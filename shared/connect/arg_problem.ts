import type { InputType, OperationInput } from '../model/connector.ts';

/** Why a value does not fit an input, without the value; null if it fits. */
export function argProblem(input: OperationInput, value: unknown): string | null {
  if (value === null) return null;
  const mismatch = TYPE_PROBLEMS[input.type](value);
  if (mismatch !== null) return mismatch;
  if (hasLoneSurrogate(value)) return 'is not well-formed Unicode';
  if (input.in === 'path') return pathValueProblem(value);
  if (input.in === 'query' && Array.isArray(value)) return listProblem(value);
  return null;
}

const TYPE_PROBLEMS: { readonly [T in InputType]: (value: unknown) => string | null } = {
  string: (value) => (typeof value === 'string' ? null : 'must be a text'),
  integer: (value) => {
    if (typeof value !== 'number' || !Number.isInteger(value)) return 'must be a whole number';
    return Number.isSafeInteger(value) ? null : 'is larger than a number can hold exactly';
  },
  number: (value) => (typeof value === 'number' && Number.isFinite(value) ? null : 'must be a number'),
  boolean: (value) => (typeof value === 'boolean' ? null : 'must be true or false'),
  array: (value) => (Array.isArray(value) ? null : 'must be a list'),
  object: (value) =>
    typeof value === 'object' && value !== null && !Array.isArray(value) ? null : 'must be an object',
};

/** An empty segment or a dot segment would change the path, however it is encoded. */
function pathValueProblem(value: unknown): string | null {
  if (typeof value !== 'string') return null;
  if (value === '') return 'is empty: it is a segment of the path';
  if (value === '.' || value === '..') return 'is a dot segment, which could lead to another path';
  if (/\p{Cc}/u.test(value)) return 'contains a control character';
  return value.split(/[/\\]/).some((part) => part === '.' || part === '..')
    ? 'contains a dot segment, which could lead to another path'
    : null;
}

function listProblem(values: readonly unknown[]): string | null {
  const isPlain = values.every((value) => ['string', 'number', 'boolean'].includes(typeof value));
  return isPlain ? null : 'must be a list of texts, numbers, true or false';
}

function hasLoneSurrogate(value: unknown): boolean {
  if (typeof value === 'string') return /\p{Cs}/u.test(value);
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([key, member]) => hasLoneSurrogate(key) || hasLoneSurrogate(member));
}
