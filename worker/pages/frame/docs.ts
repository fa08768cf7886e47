import type { OpenAPIHono } from '@hono/zod-openapi';
import { html } from 'hono/html';
import { ERROR_STATUS } from '../../../shared/wire/errors.ts';
import { codeBlock } from '../components/code_block.ts';
import { pageHeader } from '../components/page_header.ts';
import type { Html } from './html.ts';
import { layout, type Page } from './layout.ts';
import { fieldRow, schemaView, type SchemaView } from './schema_view.ts';

type ApiDocument = ReturnType<OpenAPIHono['getOpenAPI31Document']>;

/** The parts of an operation that the page shows. */
interface ApiOperation {
  readonly summary?: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly security?: readonly Readonly<Record<string, unknown>>[];
  readonly parameters?: readonly ApiParameter[];
  readonly requestBody?: { readonly content?: Content };
  readonly responses?: Readonly<Record<string, ApiReply>>;
}
interface ApiReply {
  readonly description?: string;
  readonly content?: Content;
}
interface ApiParameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly schema?: unknown;
}
type Content = Readonly<Record<string, { readonly schema?: unknown }>>;

interface Entry {
  readonly method: string;
  readonly path: string;
  readonly operation: ApiOperation;
}

/** The API reference: every operation with its fields, every named schema and every error. */
export function docsPage(document: ApiDocument): Page {
  const entries = Object.entries(document.paths ?? {}).flatMap(([path, methods]) => {
    const operations: [string, ApiOperation][] = Object.entries(methods);
    return operations.map(([method, operation]) => ({ method, path, operation }));
  });
  const schemas = Object.entries(document.components?.schemas ?? {});
  return layout(
    'API reference',
    html`${pageHeader({
        title: html`${document.info.title} <span class="quiet">${document.info.version}</span>`,
        lead: document.info.description ?? '',
        actions: html`<a class="button" href="/openapi.json">openapi.json</a>`,
      })}
      ${codeBlock('svc api GET /v1/me')}
      <nav class="contents" aria-label="Operations">
        ${groups(entries).map(([tag, members]) => contents(tag, members))}
      </nav>
      <h2>Operations</h2>
      ${entries.map((entry) => operationSection(entry))}
      <h2 id="errors">Errors</h2>
      ${errorTable()}
      <h2 id="schemas">Schemas</h2>
      ${schemas.map(([name, schema]) => schemaSection(name, schema))}`,
  );
}

function groups(entries: readonly Entry[]): [string, Entry[]][] {
  const byTag = new Map<string, Entry[]>();
  for (const entry of entries) {
    const tag = entry.operation.tags?.[0] ?? 'service';
    byTag.set(tag, [...(byTag.get(tag) ?? []), entry]);
  }
  return [...byTag];
}

function contents(tag: string, entries: readonly Entry[]): Html {
  return html`<div>
    <strong>${tag}</strong>
    <ul>
      ${entries.map(({ method, path, operation }) => {
        return html`<li><a href="#${anchor(method, path)}">${operation.summary ?? path}</a></li>`;
      })}
    </ul>
  </div>`;
}

function anchor(method: string, path: string): string {
  return `${method}${path.replaceAll(/\W+/g, '-')}`;
}

function operationSection({ method, path, operation }: Entry): Html {
  return html`<section class="reference" id="${anchor(method, path)}">
    <h3><span class="method ${method}">${method}</span> <code>${path}</code></h3>
    <p>${operation.summary ?? ''}. ${operation.description ?? ''} <span class="quiet">${access(operation)}</span></p>
    ${parameterTable('In the path', 'path', operation)} ${parameterTable('In the query', 'query', operation)}
    ${parameterTable('In the headers', 'header', operation)}
    <dl>
      ${replyLine('Body', { ...operation.requestBody })}
      ${Object.entries(operation.responses ?? {}).map(([status, reply]) => replyLine(status, reply))}
    </dl>
  </section>`;
}

function access(operation: ApiOperation): string {
  const names = (operation.security ?? []).flatMap((requirement) => Object.keys(requirement));
  if (names.length === 0) return 'For anyone.';
  if (names.includes('browser')) return 'For a signed-in browser.';
  return names.includes('sidecar') ? 'For an enrolled sidecar.' : 'For a signed-in user.';
}

function parameterTable(title: string, location: string, operation: ApiOperation): Html | string {
  const parameters = (operation.parameters ?? []).filter((parameter) => parameter.in === location);
  if (parameters.length === 0) return '';
  const rows = parameters.map(({ name, required, schema }) => fieldRow(name, required === true, toSchema(schema)));
  return html`<p class="quiet">${title}</p>
    <div class="scroll" tabindex="0" role="group" aria-label="Fields">
      <table class="fields">
        <tbody>
          ${rows}
        </tbody>
      </table>
    </div>`;
}

function replyLine(label: string, reply: ApiReply): Html | string {
  const schema = reply.content?.['application/json']?.schema;
  if (label === 'default' || (schema === undefined && reply.description === undefined)) return '';
  const content = schema === undefined ? html`${reply.description ?? ''}` : schemaView(toSchema(schema));
  return html`<dt>${label}</dt>
    <dd>${content}</dd>`;
}

function errorTable(): Html {
  const rows = Object.entries(ERROR_STATUS).map(
    ([code, status]) =>
      html`<tr>
        <td>${status}</td>
        <td><code>${code}</code></td>
      </tr>`,
  );
  return html`<table class="fields">
    <tbody>
      ${rows}
    </tbody>
  </table>`;
}

function schemaSection(name: string, schema: unknown): Html {
  return html`<section class="reference" id="schema-${name}">
    <h3>${name}</h3>
    <div class="scroll" tabindex="0" role="group" aria-label="Fields">${schemaView(toSchema(schema))}</div>
  </section>`;
}

function toSchema(schema: unknown): SchemaView {
  return typeof schema === 'object' && schema !== null ? schema : {};
}
