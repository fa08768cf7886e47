import { hasReference } from '../references.ts';
import type { InstallationPlan, PlanInput } from './plan.ts';

/** The installing person's values by input name; a list for a repeated input. */
export type InputValues = Readonly<Record<string, string | readonly string[]>>;

/** Why an input is invalid. The message quotes no value, because it may be a secret in the wrong field. */
export interface InputProblem {
  readonly input: string;
  readonly code: 'missing' | 'invalid' | 'unknown';
  /** A predicate for the input's name. */
  readonly message: string;
}

const MAX_VALUE = 8_000;
const MAX_REPEATED = 50;
const HOST_PART = /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/i;

/** The values of a plan's inputs: as given, or their defaults. Inputs with neither are absent. */
export function inputValues(plan: InstallationPlan, given: InputValues): ReadonlyMap<string, readonly string[]> {
  const values = new Map<string, readonly string[]>();
  for (const input of plan.inputs) {
    const value = Object.hasOwn(given, input.name) ? given[input.name] : undefined;
    const list = typeof value === 'string' ? [value] : (value ?? []);
    const present = list.filter((text) => text !== '');
    if (present.length > 0) values.set(input.name, present);
    else if (input.default !== null) values.set(input.name, [input.default]);
  }
  return values;
}

/** All problems with the given values: unknown inputs, invalid values, and missing ones. */
export function inputProblems(plan: InstallationPlan, given: InputValues): readonly InputProblem[] {
  const known = new Set(plan.inputs.map(({ name }) => name));
  const unknown = Object.keys(given)
    .filter((name) => !known.has(name))
    .map((name): InputProblem => ({
      input: name,
      code: 'unknown',
      message: `is not an input of this server; ${listOf(known)}`,
    }));
  const values = inputValues(plan, given);
  return [...unknown, ...plan.inputs.flatMap((input) => problemsOf(input, values.get(input.name) ?? []))];
}

function problemsOf(input: PlanInput, values: readonly string[]): readonly InputProblem[] {
  const { name } = input;
  if (values.length === 0) {
    if (!input.required || input.credential !== null) return [];
    return [
      {
        input: name,
        code: 'missing',
        message: `is required: ${input.description === '' ? 'give a value' : input.description}`,
      },
    ];
  }
  if (values.length > (input.isRepeated ? MAX_REPEATED : 1)) {
    return [
      {
        input: name,
        code: 'invalid',
        message: input.isRepeated ? `has more than ${MAX_REPEATED} values` : 'takes one value',
      },
    ];
  }
  const problem = values.map((value) => valueProblem(input, value)).find((found) => found !== null);
  return problem === undefined ? [] : [{ input: name, code: 'invalid', message: problem }];
}

function valueProblem(input: PlanInput, value: string): string | null {
  if (value.length > MAX_VALUE) return `is longer than ${MAX_VALUE} characters`;
  if (/[\0\p{Cs}]/u.test(value)) return 'has a character that no value can have';
  if (hasReference(value))
    return 'has a vault:// reference; give the value itself, it goes into the vault if it is a secret';
  if (value === input.default) return targetsProblem(input, value);
  if (input.choices.length > 0 && !input.choices.includes(value))
    return `is none of its choices: ${input.choices.join(', ')}`;
  return formatProblem(input, value) ?? targetsProblem(input, value);
}

function formatProblem({ format }: PlanInput, value: string): string | null {
  if (format === 'number' && !/^-?\d{1,15}(?:\.\d{1,15})?$/.test(value)) return 'is not a number';
  if (format === 'boolean' && value !== 'true' && value !== 'false') return 'is neither "true" nor "false"';
  return null;
}

function targetsProblem({ targets, secret }: PlanInput, value: string): string | null {
  // A multi-line value, such as a private key, is allowed only in the environment.
  const isOneLine = !(secret && targets.every((target) => target === 'env'));
  if (isOneLine && /[\p{Cc}\p{Zl}\p{Zp}]/u.test(value)) return 'has a line break or another control character';
  if (targets.includes('header') && (!/^[ -~]+$/.test(value) || value.trim() !== value)) {
    return 'goes into a header, which may have only printable ASCII, without spaces around it';
  }
  if (targets.includes('url_host') && !HOST_PART.test(value))
    return 'goes into a host name: letters, digits, "." and "-"';
  if (targets.includes('url_path') && /^\.{1,2}$/.test(value)) return 'goes into a path, and would lead out of it';
  return null;
}

function listOf(names: ReadonlySet<string>): string {
  return names.size === 0 ? 'it takes none' : `known are ${[...names].join(', ')}`;
}
