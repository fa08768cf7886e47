import type { OpenAPIHono } from '@hono/zod-openapi';
import { html } from 'hono/html';
import { type Html, layout } from './layout.ts';

type ApiDocument = ReturnType<OpenAPIHono['getOpenAPI31Document']>;

/** As much of an operation as the page shows. */
interface ApiOperation {
  readonly summary?: string;
  readonly description?: string;
  readonly security?: readonly Readonly<Record<string, unknown>>[];
  readonly parameters?: readonly ApiParameter[];
  readonly requestBody?: { readonly content?: Content };
  readonly responses?: Readonly<Record<string, { readonly description?: string; readonly content?: Content }>>;
}
interface ApiParameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly schema?: unknown;
}
type Content = Readonly<Record<string, { readonly schema?: unknown }>>;

/** A reader of the API's own description: every operation with its fields, then every named schema. */
export function docsPage(document: ApiDocument): Html {
  const operations = Object.entries(document.paths ?? {}).flatMap(([path, methods]) => {
    const entries: [string, ApiOperation][] = Object.entries(methods);
    return entries.map(([method, operation]) => operationSection(method, path, operation));
  });
  const schemas = Object.entries(document.components?.schemas ?? {});
  return layout(
    'API reference',
    html`<h1>${document.info.title} ${document.info.version}</h1>
      <p>${document.info.description ?? ''} The document itself: <a href="/openapi.json">openapi.json</a>.</p>
      <h2>Operations</h2>
      ${operations}
      <h2>Schemas</h2>
      ${schemas.map(
        ([name, schema]) =>
          html`<h3 id="schema-${name}">${name}</h3>
            ${schemaBlock(schema)}`,
      )}`,
  );
}

function operationSection(method: string, path: string, operation: ApiOperation): Html {
  return html`<section>
    <h3 id="${method}-${path}"><span class="method">${method}</span> <code>${path}</code></h3>
    <p>${operation.summary ?? ''}. ${operation.description ?? ''} ${access(operation)}</p>
    ${parameterTable(operation.parameters ?? [])} ${bodyBlock('Body', operation.requestBody?.content)}
    ${Object.entries(operation.responses ?? {}).map(([status, reply]) => replyBlock(status, reply))}
  </section>`;
}

function access(operation: ApiOperation): string {
  const names = (operation.security ?? []).flatMap((requirement) => Object.keys(requirement));
  return names.length === 0 ? 'For anyone.' : `For a signed-in ${names.join(' or ')}.`;
}

function parameterTable(parameters: readonly ApiParameter[]): Html | string {
  if (parameters.length === 0) return '';
  const rows = parameters.map(
    (parameter) =>
      html`<tr>
        <td><code>${parameter.name}</code></td>
        <td>${parameter.in}</td>
        <td>${parameter.required === true ? 'required' : 'optional'}</td>
        <td><code>${JSON.stringify(parameter.schema)}</code></td>
      </tr>`,
  );
  return html`<div class="scroll">
    <table>
      <tbody>
        ${rows}
      </tbody>
    </table>
  </div>`;
}

function replyBlock(
  status: string,
  reply: { readonly description?: string; readonly content?: Content },
): Html | string {
  if (status === 'default') return '';
  return reply.content === undefined
    ? html`<p>${status}: ${reply.description ?? ''}</p>`
    : bodyBlock(status, reply.content);
}

function bodyBlock(label: string, content: Content | undefined): Html | string {
  const schema = content?.['application/json']?.schema;
  if (schema === undefined) return '';
  const name = referenceName(schema);
  if (name !== null) return html`<p>${label}: <a href="#schema-${name}">${name}</a></p>`;
  return html`<p>${label}:</p>
    ${schemaBlock(schema)}`;
}

function referenceName(schema: unknown): string | null {
  if (typeof schema !== 'object' || schema === null || !('$ref' in schema)) return null;
  return typeof schema.$ref === 'string' ? (schema.$ref.split('/').at(-1) ?? null) : null;
}

function schemaBlock(schema: unknown): Html {
  return html`<pre>${JSON.stringify(schema, null, 2)}</pre>`;
}
