import { z } from 'zod';
import { err, ok, type Result } from '../model/result.ts';
import { type Element, elementOf, fitsElement } from './element_filter.ts';
import { countConditions, parsePatchPath, type PatchPath } from './filter.ts';
import { asJsonObject, canonical, type JsonObject } from './json_resource.ts';
import { type Attribute, findAttribute, localName, PATCH_SCHEMA } from './schemas.ts';
import { MAX_MEMBERS } from './resources.ts';
import { type ScimProblem, scimProblem } from './scim_problem.ts';

const MAX_OPERATIONS = 1_000;
/**
 * The most times that the elements of lists are looked at: 100 operations on as many members as may be. That takes a tenth
 * of a second, in which nobody else is served.
 */
const MAX_LOOKS = 100 * MAX_MEMBERS;

/** How often one request may still look at an element, once for each condition. Without it, a small body takes minutes. */
interface Effort {
  left: number;
}

interface Operation {
  readonly op: 'add' | 'remove' | 'replace';
  readonly path: string | null;
  /** Undefined if it is absent. */
  readonly value: unknown;
}

const operation = z.object({
  op: z.string().max(20),
  path: z.string().nullish(),
  value: z.unknown().optional(),
});
const patchBody = z.object({ schemas: z.array(z.string()), Operations: z.array(operation) });

/** The operations of a PATCH body (RFC 7644 section 3.5.2). Entra writes the names of operations with a capital. */
export function parsePatch(body: unknown): Result<readonly Operation[], ScimProblem> {
  const parsed = patchBody.safeParse(withName(body, 'operations', 'Operations'));
  if (!parsed.success || !parsed.data.schemas.includes(PATCH_SCHEMA)) {
    return err(scimProblem('invalidSyntax', `the body must have schemas with ${PATCH_SCHEMA}, and Operations`));
  }
  const { Operations: sent } = parsed.data;
  if (sent.length > MAX_OPERATIONS) return err(scimProblem('tooMany', `more than ${MAX_OPERATIONS} operations`));
  const operations: Operation[] = [];
  for (const { op, path, value } of sent) {
    const known = (['add', 'remove', 'replace'] as const).find((each) => each === op.toLowerCase());
    if (known === undefined) return err(scimProblem('invalidSyntax', 'op must be add, remove or replace'));
    operations.push({ op: known, path: path ?? null, value });
  }
  return ok(operations);
}

function withName(body: unknown, name: string, canonicalName: string): unknown {
  const object = asJsonObject(body);
  const key = Object.keys(object ?? {}).find((each) => each.toLowerCase() === name);
  return object === null || key === undefined ? body : { ...object, [canonicalName]: object[key] };
}

/** Applies operations to a resource with canonical names. The result is checked like a new resource. */
export function applyPatch(
  resource: JsonObject,
  operations: readonly Operation[],
  attributes: readonly Attribute[],
): Result<JsonObject, ScimProblem> {
  const to = { attributes, effort: { left: MAX_LOOKS } };
  let patched = resource;
  for (const each of operations) {
    const next = each.path === null ? applyValue(patched, each, to) : applyAt(patched, each, to);
    if (!next.ok) return next;
    patched = next.value;
  }
  return ok(patched);
}

interface Target {
  readonly attributes: readonly Attribute[];
  readonly effort: Effort;
}

/** An operation without a path: its value is a part of a resource, whose names may be paths. Okta and Entra send it. */
function applyValue(resource: JsonObject, { op, value }: Operation, to: Target): Result<JsonObject, ScimProblem> {
  if (op === 'remove') return err(scimProblem('noTarget', 'a remove operation needs a path'));
  const parts = asJsonObject(value);
  if (parts === null) return err(scimProblem('invalidValue', 'value must be an object if there is no path'));
  let patched = resource;
  for (const [name, part] of Object.entries(parts)) {
    // A whole resource is sent back with its id and schemas, which do not change.
    if (findAttribute(to.attributes, localName(name))?.mutability === 'readOnly') continue;
    const next = applyAt(patched, { op, path: name, value: part }, to);
    if (!next.ok) return next;
    patched = next.value;
  }
  return ok(patched);
}

function applyAt(
  resource: JsonObject,
  { op, path: text, value }: Operation,
  { attributes, effort }: Target,
): Result<JsonObject, ScimProblem> {
  const path = parsePatchPath(text ?? '');
  if (!path.ok) return err(scimProblem('invalidPath', `path ${path.error.detail}`));
  const target = findAttribute(attributes, path.value.attribute);
  // Directories send attributes that this server does not keep, such as department.
  if (target === null) return ok(resource);
  if (target.mutability === 'readOnly') return err(scimProblem('mutability', `${target.name} cannot be written`));
  const sub = path.value.sub === null ? null : findAttribute(target.subAttributes ?? [], path.value.sub);
  if (path.value.sub !== null && sub === null) return ok(resource);
  if (sub?.mutability === 'immutable') return err(scimProblem('mutability', `${target.name} are added and removed`));
  const change: Change = { op, target, path: path.value, sub, value, effort };
  const changed = target.multiValued ? changeList(resource, change) : changeOne(resource, change);
  if (!changed.ok) return changed;
  const { [target.name]: _before, ...others } = resource;
  return ok(changed.value === undefined ? others : { ...others, [target.name]: changed.value });
}

interface Change {
  readonly op: Operation['op'];
  readonly target: Attribute;
  readonly path: PatchPath;
  readonly sub: Attribute | null;
  readonly value: unknown;
  readonly effort: Effort;
}

function changeOne(resource: JsonObject, { op, target, path, sub, value }: Change): Result<unknown, ScimProblem> {
  if (path.filter !== null) return err(scimProblem('invalidPath', `${target.name} has no elements to filter`));
  if (target.type !== 'complex') return ok(op === 'remove' ? undefined : value);
  const before = asJsonObject(resource[target.name]) ?? {};
  if (sub !== null) return ok(withSub(before, sub.name, op === 'remove' ? undefined : value));
  if (op === 'remove') return ok(undefined);
  const parts = asJsonObject(value);
  if (parts === null) return err(scimProblem('invalidValue', `${target.name} must be an object`));
  return ok({ ...before, ...canonical(parts, target.subAttributes ?? []) });
}

function changeList(resource: JsonObject, change: Change): Result<readonly Element[], ScimProblem> {
  const { op, target, path, sub, value, effort } = change;
  const before = writtenElements(resource[target.name]);
  effort.left -= before.length * (path.filter === null ? 1 : countConditions(path.filter));
  if (effort.left < 0) return err(tooManyLooks(target, before.length));
  if (path.filter !== null) return changeFitting(before, path.filter, change);
  if (sub !== null) return ok(changeSub(before, sub, change));
  if (op === 'remove' && (value === undefined || value === null)) return ok([]);
  const given = elementsOf(value, target);
  if (given === null) return err(scimProblem('invalidValue', `${target.name} must be a list of objects with a value`));
  if (op === 'replace') return ok(given);
  const named = new Set(given.map((each) => keyOf(each)));
  // Entra removes members by a value with the members, not by a filter. An empty list removes nobody.
  const others = before.filter((each) => !named.has(keyOf(each)));
  return ok(op === 'remove' ? others : [...lessPrimary(others, given), ...given]);
}

function tooManyLooks({ name }: Attribute, length: number): ScimProblem {
  const detail = `the operations would look at the ${length} ${name} too often: send 100 operations at a time or fewer, each with few conditions`;
  return scimProblem('tooMany', detail);
}

function changeFitting(
  before: readonly Element[],
  filter: NonNullable<PatchPath['filter']>,
  { op, target, sub, value }: Change,
): Result<readonly Element[], ScimProblem> {
  const fits = (element: Element) => fitsElement(filter, element);
  if (op === 'remove') {
    if (sub === null) return ok(before.filter((each) => !fits(each)));
    return ok(before.map((each) => (fits(each) ? withSub(each, sub.name, undefined) : each)));
  }
  const parts = sub === null ? partsOf(value, target) : { [sub.name]: value };
  if (parts === null) return err(scimProblem('invalidValue', `the value for ${target.name} must be an object`));
  if (before.some((each) => fits(each))) {
    return ok(before.map((each) => (fits(each) ? { ...each, ...parts } : each)));
  }
  // Entra sets the address of a type that the user has no address of yet.
  const fixed = elementOf(filter);
  if (fixed === null) return err(scimProblem('noTarget', `no element of ${target.name} fits the filter`));
  const made = { ...canonical(fixed, target.subAttributes ?? []), ...parts };
  return ok([...lessPrimary(before, [made]), made]);
}

function changeSub(before: readonly Element[], sub: Attribute, { op, value }: Change): readonly Element[] {
  const written = op === 'remove' ? undefined : value;
  if (before.length === 0) return written === undefined ? [] : [{ [sub.name]: written }];
  return before.map((each) => withSub(each, sub.name, written));
}

/** A new primary element takes that from the others. */
function lessPrimary(others: readonly Element[], given: readonly Element[]): readonly Element[] {
  const hasPrimary = given.some((each) => isTrue(each['primary']));
  return hasPrimary ? others.map((each) => withSub(each, 'primary', undefined)) : others;
}

function isTrue(value: unknown): boolean {
  return value === true || (typeof value === 'string' && value.toLowerCase() === 'true');
}

function withSub(element: Element, name: string, value: unknown): Element {
  const { [name]: _before, ...others } = element;
  return value === undefined ? others : { ...others, [name]: value };
}

/** The identity of an element: its value. */
function keyOf(element: Element): string {
  return String(element['value']).toLowerCase();
}

/** The elements of a resource's own list, whose names are canonical already. */
function writtenElements(list: unknown): readonly Element[] {
  return Array.isArray(list) ? list.filter((each) => isElement(each)) : [];
}

function isElement(value: unknown): value is Element {
  return typeof value === 'object' && value !== null;
}

function elementsOf(value: unknown, target: Attribute): readonly Element[] | null {
  const list = Array.isArray(value) ? value : value === undefined || value === null ? [] : [value];
  const elements = list.map((each) => partsOf(each, target));
  return elements.some((each) => each === null) ? null : elements.filter((each) => each !== null);
}

function partsOf(value: unknown, target: Attribute): Element | null {
  if (typeof value === 'string') return { value };
  const object = asJsonObject(value);
  return object === null ? null : canonical(object, target.subAttributes ?? []);
}
