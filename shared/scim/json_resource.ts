import { type Attribute, findAttribute, localName } from './schemas.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

/** A JSON object; null for any other value. */
export function asJsonObject(value: unknown): JsonObject | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value))
    : null;
}

/** The known attributes of an object, by their canonical names. Names have no case in SCIM; null is no value. */
export function canonical(object: JsonObject, attributes: readonly Attribute[]): JsonObject {
  return Object.fromEntries(
    Object.entries(object).flatMap(([name, value]) => {
      const known = findAttribute(attributes, localName(name));
      if (known === null || value === null || value === undefined) return [];
      return [[known.name, known.type === 'complex' ? canonicalParts(value, known) : value] as const];
    }),
  );
}

function canonicalParts(value: unknown, { subAttributes = [] }: Attribute): unknown {
  if (Array.isArray(value)) {
    return value.map((each: unknown) => {
      const object = asJsonObject(each);
      return object === null ? each : canonical(object, subAttributes);
    });
  }
  const object = asJsonObject(value);
  return object === null ? value : canonical(object, subAttributes);
}
