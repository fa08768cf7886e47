import { html } from 'hono/html';
import type { InstallPreview, MarketplaceInput } from '../../../shared/wire/marketplace.ts';
import { alert } from '../components/alert.ts';
import { badge } from '../components/badge.ts';
import { dataTable } from '../components/data_table.ts';
import { definitionList } from '../components/definition_list.ts';
import { foreignCommand } from '../components/foreign_command.ts';
import { foreignText } from '../components/foreign_text.ts';
import type { Html } from '../frame/html.ts';

/** Exactly what an install starts or calls, with `{input}` in place of values. */
export function installPreview(preview: InstallPreview): Html {
  const { mode, command, url, transport, env, headers, warnings } = preview;
  return html`${warningList(warnings)}
    <p>
      ${
        mode === 'local'
          ? 'Each machine whose gateway uses it starts this program, without a shell.'
          : 'The gateway on your machine calls this address; no program is started.'
      }
    </p>
    ${mode === 'local' ? foreignCommand(command) : foreignCommand([url ?? ''])}
    ${definitionList([
      ['Transport', mode === 'remote' ? foreignText(transport ?? '') : 'stdio'],
      ['Variables', fieldList(env)],
      ['Headers', fieldList(headers)],
    ])}`;
}

function fieldList(fields: Readonly<Record<string, string>>): Html | null {
  const entries = Object.entries(fields);
  if (entries.length === 0) return null;
  return html`<ul class="plain">
    ${entries.map(([name, value]) => html`<li><code>${foreignText(name)}: ${foreignText(value)}</code></li>`)}
  </ul>`;
}

/** Warnings about a command before it runs. */
export function warningList(warnings: readonly { readonly message: string }[]): Html | string {
  if (warnings.length === 0) return '';
  return alert(
    'warn',
    html`<p><strong>Before you install</strong></p>
      <ul>
        ${warnings.map(({ message }) => html`<li>${foreignText(message)}</li>`)}
      </ul>`,
  );
}

/** The inputs of an install. */
export function inputTable(inputs: readonly MarketplaceInput[]): Html {
  return dataTable<MarketplaceInput>({
    caption: 'What it asks for',
    rows: inputs,
    columns: [
      { title: 'Name', cell: ({ name }) => html`<code>${foreignText(name)}</code>` },
      { title: 'What for', cell: ({ description }) => foreignText(description) },
      { title: 'Kind', cell: (input) => inputKind(input) },
      { title: 'Goes to', cell: ({ goes_to: places }) => foreignText(places.join(', ')) },
    ],
  });
}

function inputKind({ required, secret }: MarketplaceInput): Html {
  return html`${badge(required ? 'accent' : 'plain', required ? 'Required' : 'Optional')}
  ${secret ? badge('plain', 'Secret') : ''}`;
}
