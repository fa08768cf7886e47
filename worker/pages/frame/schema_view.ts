import { html } from 'hono/html';
import type { Html } from './html.ts';

/** The parts of JSON Schema that the OpenAPI document uses. */
export interface SchemaView {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly oneOf?: readonly SchemaView[];
  readonly format?: string;
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly items?: SchemaView;
  readonly properties?: Readonly<Record<string, SchemaView>>;
  readonly required?: readonly string[];
  readonly default?: unknown;
}

/** A schema in words; an inline object as a table of its fields. */
export function schemaView(schema: SchemaView): Html {
  const name = schema.$ref?.split('/').at(-1);
  if (name !== undefined) return html`<a href="#schema-${name}">${name}</a>`;
  if (schema.oneOf !== undefined) return html`one of ${schema.oneOf.map((form) => schemaView(form))}`;
  if (schema.properties !== undefined) return fieldTable(schema.properties, schema.required ?? []);
  if (schema.items !== undefined) return html`list of ${schemaView(schema.items)}${itemCount(schema)}`;
  return html`${valueWords(schema)}`;
}

function fieldTable(properties: Readonly<Record<string, SchemaView>>, required: readonly string[]): Html {
  const rows = Object.entries(properties).map(([name, schema]) => fieldRow(name, required.includes(name), schema));
  return html`<table class="fields">
    <tbody>
      ${rows}
    </tbody>
  </table>`;
}

/** A row in a table of fields or parameters. */
export function fieldRow(name: string, isRequired: boolean, schema: SchemaView): Html {
  return html`<tr>
    <td><code>${name}</code></td>
    <td class="quiet">${isRequired ? 'required' : 'optional'}</td>
    <td>${schemaView(schema)}</td>
  </tr>`;
}

function itemCount({ minItems, maxItems }: SchemaView): string {
  const count = range(minItems === 0 ? undefined : minItems, maxItems);
  return count === '' ? '' : `, ${count} of them`;
}

function valueWords(schema: SchemaView): Html {
  const words = [kind(schema), limits(schema)].filter((each) => each !== '').join(', ');
  return html`${words} ${choices(schema)} ${pattern(schema)} ${fallback(schema)}`;
}

function kind({ type, format, enum: values }: SchemaView): string {
  if (values !== undefined) return 'one of';
  const types = typeof type === 'string' ? [type] : (type ?? ['any JSON']);
  return types.map((each) => (each === 'string' && format === 'date-time' ? 'time' : each)).join(' or ');
}

function limits({ minLength, maxLength, minimum, maximum }: SchemaView): string {
  const length = range(minLength, maxLength);
  const size = range(minimum, maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum);
  return [length === '' ? '' : `${length} characters`, size].filter((each) => each !== '').join(', ');
}

function range(from: number | undefined, to: number | undefined): string {
  if (to === undefined) return from === undefined ? '' : `at least ${from}`;
  if (from === to) return String(to);
  return from === undefined ? `at most ${to}` : `${from} to ${to}`;
}

function choices({ enum: values }: SchemaView): Html[] {
  return (values ?? []).map((value) => html`<code>${String(value)}</code> `);
}

function pattern({ pattern: text }: SchemaView): Html | string {
  return text === undefined ? '' : html`<code class="pattern">${text}</code>`;
}

function fallback({ default: value }: SchemaView): Html | string {
  return value === undefined ? '' : html`<span class="quiet">default</span> <code>${JSON.stringify(value)}</code>`;
}
