import { html } from 'hono/html';
import type { Content, Html } from '../frame/html.ts';

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => Content;
  /** For buttons: aligned right, and without a label on a narrow screen. */
  readonly isActions?: true;
  /** Has no meaning for the one user of local mode. */
  readonly isHostedOnly?: true;
}

/**
 * A table that shows each row as a card on narrow screens. The ARIA roles are explicit because `display` removes the
 * implicit ones.
 */
export function dataTable<Row>(table: {
  /** Describes the rows for screen readers. */
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  /** Identifies a row in a live list: a row stays, with its focus, while its key does. */
  readonly key?: (row: Row) => string;
}): Html {
  const { caption, columns, rows, key } = table;
  return html`<table class="rows" role="table">
    <caption class="hidden-but-read">
      ${caption}
    </caption>
    <thead role="rowgroup">
      <tr role="row">
        ${columns.map(
          ({ title, isActions, isHostedOnly }) =>
            html`<th
              scope="col"
              role="columnheader"
              class="${classesOf(isActions === true && 'end', isHostedOnly === true && 'hosted-only')}"
            >
              ${isActions === true ? html`<span class="hidden-but-read">${title}</span>` : title}
            </th>`,
        )}
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${rows.map(
        (row) =>
          html`<tr role="row" ${key === undefined ? '' : html`data-key="${key(row)}"`}>
            ${columns.map((column) => cell(column, row))}
          </tr>`,
      )}
    </tbody>
  </table>`;
}

function classesOf(...names: readonly (string | false)[]): string {
  return names.filter((name) => name !== false).join(' ');
}

function cell<Row>({ title, cell: contentOf, isActions, isHostedOnly }: Column<Row>, row: Row): Html {
  const content = contentOf(row);
  const kind = classesOf(isActions === true && 'end', content === '' && 'none', isHostedOnly === true && 'hosted-only');
  return html`<td role="cell" data-label="${isActions === true ? '' : title}" class="${kind}">
    <div>${content}</div>
  </td>`;
}
