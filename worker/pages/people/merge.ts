import { html } from 'hono/html';
import { type MergedKind, MERGED_KINDS, type MergePreview } from '../../../shared/wire/people/merges.ts';
import { alert } from '../components/alert.ts';
import { confirmPage } from '../components/confirm_page.ts';
import { dataTable } from '../components/data_table.ts';
import { foreignText } from '../components/foreign_text.ts';
import type { FormState } from '../components/form_field.ts';
import { pageHeader } from '../components/page_header.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';

/** What would move, and where to. */
export interface Merge {
  readonly preview: MergePreview;
  /** The enterprise that the person is in. */
  readonly into: string;
}

const KINDS: { readonly [K in MergedKind]: readonly [one: string, many: string] } = {
  secret: ['secret', 'secrets'],
  host_binding: ['binding', 'bindings'],
  tunnel_host: ['tunnelled host', 'tunnelled hosts'],
  client_certificate: ['client certificate', 'client certificates'],
  connector: ['connector', 'connectors'],
  mcp_server: ['MCP server', 'MCP servers'],
};

const ABOVE = { path: '/enterprises', title: 'Your enterprises' };

/** Asks for the slug of the enterprise that things leave; while names clash, lists these instead. */
export function mergePage({ preview, into }: Merge, form: FormState): Page {
  const { name, slug, enterprise_id: id, clashes } = preview;
  if (clashes.length > 0) return clashesPage({ preview, into });
  const moves = MERGED_KINDS.map((kind) => [kind, preview.moves[kind] ?? 0] as const).filter(([, count]) => count > 0);
  if (moves.length === 0) return emptyPage(name);
  return confirmPage({
    title: 'Move everything here?',
    consequence: html`All that you and <strong>${foreignText(name)}</strong> own there becomes your own in
      <strong>${foreignText(into)}</strong>, in one step or not at all:`,
    effects: html`<ul>
        ${moves.map(([kind, count]) => html`<li>${count} ${KINDS[kind][count === 1 ? 0 : 1]}</li>`)}
      </ul>
      <p class="quiet">
        Nobody else here gets any of it. Values stay sealed. The audit log, machines, tokens and sign-in settings stay
        there, and programs that use them there stop having these credentials.
      </p>`,
    name: slug,
    action: `/enterprises/${id}/merge`,
    button: 'Move it here',
    keep: 'Leave it there',
    hidden: {},
    above: ABOVE,
    form,
  });
}

function clashesPage({ preview: { name, clashes }, into }: Merge): Page {
  const content = html`${pageHeader({ title: 'Names clash', above: ABOVE })}
    ${alert(
      'warn',
      html`<p>
        <strong>Nothing can move yet.</strong> These names of ${foreignText(name)} are taken in ${foreignText(into)}, or
        twice there. Delete one of each two first, or store it under another name.
      </p>`,
    )}
    <div class="panel flush">
      ${dataTable<MergePreview['clashes'][number]>({
        caption: 'Names that clash',
        rows: clashes,
        columns: [
          { title: 'Kind', cell: ({ kind }) => KINDS[kind][0] },
          { title: 'Name', cell: ({ name: clashing }) => html`<code>${foreignText(clashing)}</code>` },
        ],
      })}
    </div>
    ${backLink()}`;
  return layout('Names clash', content, 'narrow');
}

function emptyPage(name: string): Page {
  const content = html`${pageHeader({ title: 'Nothing to move', above: ABOVE })}
    <p>${foreignText(name)} has no secret, binding, connector or MCP server.</p>
    ${backLink()}`;
  return layout('Nothing to move', content, 'narrow');
}

function backLink(): Html {
  return html`<div class="actions"><a class="button" href="${ABOVE.path}">${ABOVE.title}</a></div>`;
}
