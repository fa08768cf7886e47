import { z } from 'zod';

/** How a field is written as a text: `text`, a number, a list with commas, or pairs `name=value` with commas. */
export type FieldForm = 'text' | 'number' | 'list' | 'pairs';

export function formOf(schema: z.ZodType): FieldForm {
  const inner = withoutDefault(schema);
  if (inner instanceof z.ZodNumber) return 'number';
  if (inner instanceof z.ZodArray) return 'list';
  return inner instanceof z.ZodRecord ? 'pairs' : 'text';
}

/** The only values that a field may have; null if others may be typed. */
export function choicesOf(schema: z.ZodType): readonly string[] | null {
  const inner = withoutDefault(schema);
  return inner instanceof z.ZodEnum ? inner.options.map(String) : null;
}

/** Whether a field has to be given. */
export function isNeeded(schema: z.ZodType): boolean {
  return !schema.safeParse(undefined).success;
}

function withoutDefault(schema: z.ZodType): unknown {
  return schema instanceof z.ZodOptional || schema instanceof z.ZodDefault ? schema.unwrap() : schema;
}

/** The value of a field that was written as a text. A number that is none stays a text, which the schema refuses. */
export function readField(form: FieldForm, text: string): unknown {
  if (form === 'text') return text;
  if (form === 'number') return /^\d+$/.test(text.trim()) ? Number(text) : text;
  if (form === 'list') return text.split(/[\s,]+/).filter((item) => item !== '');
  const items = text.split(/[\n,]+/).map((item) => item.trim());
  return Object.fromEntries(items.filter((item) => item !== '').map((item) => splitPair(item)));
}

function splitPair(item: string): [string, string] {
  const end = item.includes('=') ? item.indexOf('=') : item.indexOf(':');
  return end < 0 ? [item, ''] : [item.slice(0, end), item.slice(end + 1)];
}

/** The text of a field's value, which {@link readField} reads. */
export function fieldText(value: unknown): string {
  if (value === undefined) return '';
  if (Array.isArray(value)) return value.join(', ');
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return Object.entries(value)
    .map((pair) => pair.join('='))
    .join(', ');
}
