import { html } from 'hono/html';
import type { Content, Html } from '../frame/html.ts';

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => Content;
  /** For buttons: aligned right, and without a label on a narrow screen. */
  readonly isActions?: true;
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
          ({ title, isActions }) =>
            html`<th scope="col" role="columnheader" class="${isActions === true ? 'end' : ''}">
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

function cell<Row>({ title, cell: contentOf, isActions }: Column<Row>, row: Row): Html {
  const content = contentOf(row);
  const kind = [isActions === true ? 'end' : '', content === '' ? 'none' : ''].filter((each) => each !== '').join(' ');
  return html`<td role="cell" data-label="${isActions === true ? '' : title}" class="${kind}">
    <div>${content}</div>
  </td>`;
}
