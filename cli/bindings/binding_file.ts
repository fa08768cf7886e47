import { isDeepStrictEqual } from 'node:util';
import { parseAllDocuments } from 'yaml';
import { duplicateBinding, type HostBindingRecord, type ValidHostBinding } from '../../shared/wire/host_binding.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { validateBinding } from './binding_input.ts';

/** The change that applying one binding would make. */
export type Change =
  | { readonly kind: 'create'; readonly binding: ValidHostBinding }
  | {
      readonly kind: 'update';
      readonly id: string;
      /** When the binding that was read was changed last. */
      readonly revision: string;
      readonly binding: ValidHostBinding;
      readonly fields: readonly FieldChange[];
    }
  | { readonly kind: 'unchanged'; readonly id: string; readonly binding: ValidHostBinding };

interface FieldChange {
  readonly field: string;
  readonly from: unknown;
  readonly to: unknown;
}

/**
 * Reads the bindings of a YAML file: a list, `bindings:` with a list, one binding, or several such documents. All are checked
 * before any is used. Errors name the position in the file.
 */
export function parseBindingFile(text: string): Result<readonly ValidHostBinding[], readonly string[]> {
  const documents = parseAllDocuments(text, { uniqueKeys: true });
  if (!Array.isArray(documents)) return err(['the file is empty: write a list of bindings']);
  const broken = documents.flatMap((document) => document.errors.map((error) => error.message));
  if (broken.length > 0) return err(broken);
  const entries = documents.flatMap((document) => bindingsIn(document.toJS({ maxAliasCount: 100 })));
  if (entries.length === 0) return err(['the file contains no binding: write a list of bindings']);
  const bindings: ValidHostBinding[] = [];
  const problems: string[] = [];
  for (const [index, entry] of entries.entries()) {
    const where = `binding ${index + 1}${hostIn(entry)}`;
    const parsed = validateBinding(entry, 'fields');
    if (!parsed.ok) problems.push(...parsed.error.map((problem) => `${where}: ${problem}`));
    else if (duplicateBinding(bindings, parsed.value) !== null) problems.push(`${where}: ${DUPLICATE}`);
    else bindings.push(parsed.value);
  }
  return problems.length > 0 ? err(problems) : ok(bindings);
}

const DUPLICATE =
  'the file has an earlier binding for the same host and sentinel: remove one, or tell them apart by a sentinel';

function bindingsIn(document: unknown): readonly unknown[] {
  if (document === null || document === undefined) return [];
  if (Array.isArray(document)) return document;
  if (typeof document === 'object' && 'bindings' in document && Object.keys(document).length === 1) {
    return Array.isArray(document.bindings) ? document.bindings : [document.bindings];
  }
  return [document];
}

function hostIn(entry: unknown): string {
  return typeof entry === 'object' && entry !== null && 'host' in entry && typeof entry.host === 'string'
    ? ` (${entry.host})`
    : '';
}

/** The changes that turn `existing` into the wanted bindings. Nothing is removed. */
export function planChanges(
  existing: readonly HostBindingRecord[],
  wanted: readonly ValidHostBinding[],
): readonly Change[] {
  return wanted.map((binding) => {
    const found = duplicateBinding(existing, binding);
    if (found === null) return { kind: 'create', binding };
    const fields = listChangedFields(inputOf(found), binding);
    return fields.length === 0
      ? { kind: 'unchanged', id: found.id, binding }
      : { kind: 'update', id: found.id, revision: found.updated_at, binding, fields };
  });
}

/** A record without the fields that the control plane adds, as a person would write it. */
export function inputOf(record: HostBindingRecord): ValidHostBinding {
  const { id: _id, created_at: _created, updated_at: _updated, ...input } = record;
  return input;
}

function listChangedFields(before: ValidHostBinding, after: ValidHostBinding): FieldChange[] {
  const from = new Map<string, unknown>(Object.entries(before));
  const to = new Map<string, unknown>(Object.entries(after));
  const names = [...new Set([...from.keys(), ...to.keys()])];
  return names
    .filter((field) => !isDeepStrictEqual(from.get(field), to.get(field)))
    .map((field) => ({ field, from: from.get(field), to: to.get(field) }));
}
