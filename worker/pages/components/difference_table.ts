import { html } from 'hono/html';
import type { Html } from '../frame/html.ts';
import { dataTable } from './data_table.ts';

/** A field of a form that somebody else saved first: its stored text and the typed one. */
export interface Difference {
  readonly field: string;
  readonly stored: string;
  readonly typed: string;
}

/** What is stored now beside what was typed; nothing if both are the same. */
export function differenceTable(differences: readonly Difference[], labelOf: (field: string) => string): Html {
  if (differences.length === 0) return html`<p class="quiet">The stored values equal yours.</p>`;
  return html`<div class="panel flush">
    ${dataTable<Difference>({
      caption: 'What differs',
      rows: differences,
      columns: [
        { title: 'Field', cell: ({ field }) => labelOf(field) },
        { title: 'Stored now', cell: ({ stored }) => toShownText(stored) },
        { title: 'Yours', cell: ({ typed }) => toShownText(typed) },
      ],
    })}
  </div>`;
}

function toShownText(text: string): Html {
  return text === '' ? html`<span class="quiet">nothing</span>` : html`<code>${text}</code>`;
}
