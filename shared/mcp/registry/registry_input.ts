import type { EntryReading } from './entry_reading.ts';
import { cutText, looseFlag, looseObject, looseText, readMember, type LooseObject } from './loose_fields.ts';

const INPUT_FORMATS = ['string', 'number', 'boolean', 'filepath'] as const;
export type InputFormat = (typeof INPUT_FORMATS)[number];

/** A value that the installing person gives, or that the publisher fixed. */
export interface RegistryVariable {
  readonly name: string;
  readonly description: string;
  readonly isRequired: boolean;
  readonly isSecret: boolean;
  /** Null: unspecified, which means text. */
  readonly format: InputFormat | null;
  /** Fixed by the publisher; may contain `{variable}`s. */
  readonly value: string | null;
  readonly default: string | null;
  /** An example, never used as a value. */
  readonly placeholder: string | null;
  /** Empty: any. */
  readonly choices: readonly string[];
}

/** An environment variable or a header: a value with its template's variables. */
export interface RegistryInput extends RegistryVariable {
  readonly variables: readonly RegistryVariable[];
}

/** An argument. `name` of a positional one is empty. */
export interface RegistryArgument extends RegistryInput {
  readonly type: 'named' | 'positional';
  readonly valueHint: string | null;
  readonly isRepeated: boolean;
}

const MAX_INPUTS = 200;
const MAX_CHOICES = 200;
const MAX_VARIABLES = 50;
const MAX_NAME = 256;
const MAX_VALUE = 4_096;
const MAX_CHOICE = 256;
const MAX_DESCRIPTION = 2_000;

/** Environment variables or headers: each has a name, and the first of each name counts. */
export function readInputs(value: unknown, what: string, reading: EntryReading): readonly RegistryInput[] {
  const inputs = new Map<string, RegistryInput>();
  for (const item of reading.items(value, `${what}s`, MAX_INPUTS)) {
    const object = looseObject(item);
    const name = object === null ? null : looseText(readMember(object, 'name'), MAX_NAME);
    if (object === null || name === null || name === '') reading.note(`a ${what} without a name was left out`);
    else if (inputs.has(name)) reading.note(`the ${what} ${JSON.stringify(name)} is there twice; the first one counts`);
    else inputs.set(name, readInput(object, name, reading));
  }
  return [...inputs.values()];
}

/** Arguments, in order. If the kind is unknown, an argument with a name is a named one. */
export function readArguments(value: unknown, reading: EntryReading): readonly RegistryArgument[] {
  const list: RegistryArgument[] = [];
  for (const item of reading.items(value, 'arguments', MAX_INPUTS)) {
    const object = looseObject(item);
    if (object === null) reading.note('an argument that is no object was left out');
    else list.push(readArgument(object, reading));
  }
  return list;
}

/** `{name: {...}}`, the variables of a template. */
export function readVariables(value: unknown, reading: EntryReading): readonly RegistryVariable[] {
  const object = looseObject(value);
  if (object === null) return [];
  const names = Object.keys(object).filter((name) => name !== '' && name.length <= MAX_NAME);
  return reading
    .items(names, 'variables of a value', MAX_VARIABLES)
    .map((name) => readVariable(looseObject(object[String(name)]) ?? {}, String(name), reading));
}

function readArgument(object: LooseObject, reading: EntryReading): RegistryArgument {
  const name = looseText(readMember(object, 'name'), MAX_NAME) ?? '';
  const type = readMember(object, 'type');
  const isNamed = type === 'named' || (type !== 'positional' && name.startsWith('-'));
  return {
    ...readInput(object, isNamed ? name : '', reading),
    type: isNamed ? 'named' : 'positional',
    valueHint: looseText(readMember(object, 'valueHint', 'value_hint'), MAX_NAME),
    isRepeated: looseFlag(readMember(object, 'isRepeated', 'is_repeated')),
  };
}

function readInput(object: LooseObject, name: string, reading: EntryReading): RegistryInput {
  const variables = readVariables(readMember(object, 'variables'), reading);
  return { ...readVariable(object, name, reading), variables };
}

function readVariable(object: LooseObject, name: string, reading: EntryReading): RegistryVariable {
  return {
    name,
    description: cutText(readMember(object, 'description'), MAX_DESCRIPTION),
    isRequired: looseFlag(readMember(object, 'isRequired', 'is_required')),
    isSecret: looseFlag(readMember(object, 'isSecret', 'is_secret')),
    format: readFormat(readMember(object, 'format')),
    value: looseText(readMember(object, 'value'), MAX_VALUE),
    default: looseText(readMember(object, 'default'), MAX_VALUE),
    placeholder: looseText(readMember(object, 'placeholder'), MAX_VALUE),
    choices: reading
      .items(readMember(object, 'choices'), 'choices', MAX_CHOICES)
      .flatMap((choice) => looseText(choice, MAX_CHOICE) ?? []),
  };
}

function readFormat(value: unknown): InputFormat | null {
  if (value === 'integer') return 'number';
  return INPUT_FORMATS.find((format) => format === value) ?? null;
}
