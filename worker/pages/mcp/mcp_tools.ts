import { html } from 'hono/html';
import { MARK_WORDS } from '../../../shared/mcp/tools/text_marks.ts';
import { toolDifferences } from '../../../shared/mcp/tools/tool_difference.ts';
import { TOOL_CHOICES, type ToolChoice } from '../../../shared/model/mcp_tool.ts';
import type { McpServerRecord } from '../../../shared/wire/mcp/mcp_servers.ts';
import { type McpToolRecord, nameOfRecord } from '../../../shared/wire/mcp/mcp_tools.ts';
import { alert, flash } from '../components/alert.ts';
import { badge, type BadgeKind } from '../components/badge.ts';
import { dataTable } from '../components/data_table.ts';
import { emptyState } from '../components/empty_state.ts';
import { foreignText } from '../components/foreign_text.ts';
import { revisionField } from '../components/form_field.ts';
import { pageHeader } from '../components/page_header.ts';
import { timeAgo } from '../components/time.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';
import { changeTable } from './mcp_server_changes.ts';

interface McpToolsView {
  readonly server: McpServerRecord;
  readonly tools: readonly McpToolRecord[];
  /** Why a change was not made. */
  readonly refusal: string | null;
  readonly done: string | undefined;
  readonly nowMs: number;
  /** Whether the caller may change the server, and so accept its tools. */
  readonly mayChange: boolean;
}

/** The tools of a server: those that wait, with what differs, and those that are reviewed, with what is allowed. */
export function mcpToolsPage(view: McpToolsView): Page {
  const { server, tools, refusal, done } = view;
  const waiting = tools.filter(({ state }) => state === 'waiting');
  const reviewed = tools.filter(({ state }) => state === 'reviewed');
  const content = html`${pageHeader({
    title: `Tools of ${server.name}`,
    lead: 'A tool or a prompt that is new or has changed is not offered until somebody accepts it.',
    above: { path: `/mcp-servers/${server.id}`, title: server.name },
  })}
  ${flash(done)} ${refusal === null ? '' : alert('bad', refusal)}
  ${waiting.length > 1 && view.mayChange ? acceptForm(server, waiting, `Accept all ${waiting.length} that wait`) : ''}
  ${waiting.map((tool, index) => waitingPanel(view, tool, index))} ${reviewedPanel(view, reviewed)}`;
  return layout(`Tools of ${server.name}`, content);
}

function waitingPanel({ server, mayChange, nowMs }: McpToolsView, tool: McpToolRecord, index: number): Html {
  const { before, definition, marks, seen_at: seen } = tool;
  const name = nameOfRecord(tool);
  const title = `waiting-${index}`;
  const changes = toolDifferences(before ?? { name: tool.name }, definition).map(({ where, ...values }) => {
    return { name: where, ...values };
  });
  return html`<section class="panel flush" aria-labelledby="${title}">
    <div class="panel-head">
      <h2 id="${title}"><code>${foreignText(name)}</code> ${before === null ? 'is new' : 'has changed'}</h2>
      <span class="quiet small">Seen ${timeAgo(seen, nowMs)}</span>
    </div>
    ${
      marks.length === 0
        ? ''
        : html`<div class="padded">
            ${alert(
              'warn',
              html`<ul class="plain">
                ${marks.map(({ mark, where }) => html`<li>It ${MARK_WORDS[mark]}: <code>${foreignText(where)}</code></li>`)}
              </ul>`,
            )}
          </div>`
    }
    ${changes.length === 0 ? '' : changeTable(changes, `What differs in ${name}`)}
    ${mayChange ? html`<div class="padded">${acceptForm(server, [tool], 'Accept', name)}</div>` : ''}
  </section>`;
}

/** Names what is accepted by its hash, so that nothing is accepted that this page did not show. */
function acceptForm(server: McpServerRecord, tools: readonly McpToolRecord[], button: string, name?: string): Html {
  return html`<form class="actions" method="post" action="/mcp-servers/${server.id}/tools/accept">
    <input type="hidden" name="hashes" value="${tools.map(({ hash }) => hash).join(' ')}" />
    <button class="primary">
      ${button}${name === undefined ? '' : html`<span class="hidden-but-read"> ${foreignText(name)}</span>`}
    </button>
  </form>`;
}

const CHOICES: Readonly<Record<ToolChoice, readonly [BadgeKind, string, string]>> = {
  allow: ['good', 'Allowed', 'Allow'],
  ask: ['accent', 'Asks', 'Ask'],
  deny: ['bad', 'Denied', 'Deny'],
};

function reviewedPanel(view: McpToolsView, tools: readonly McpToolRecord[]): Html {
  return html`<section class="panel flush" aria-labelledby="reviewed-title">
    <div class="panel-head"><h2 id="reviewed-title">Accepted</h2></div>
    ${
      tools.length === 0
        ? emptyState({
            title: 'No tool yet',
            next: 'They are learned at the install of a package, or when a client first lists them.',
          })
        : dataTable<McpToolRecord>({
            caption: 'Accepted tools and prompts',
            rows: tools,
            columns: [
              {
                title: 'Name',
                cell: (tool) =>
                  html`<code>${foreignText(nameOfRecord(tool))}</code>
                    <span class="sub"
                      ><span title="SHA-256 of its definition">definition ${tool.hash.slice(0, 12)}</span></span
                    >`,
              },
              { title: 'Description', cell: ({ definition }) => foreignText(descriptionOf(definition)) },
              {
                title: 'Calls',
                cell: ({ kind: what, choice, destructive }) => {
                  if (what !== 'tool') return '';
                  const [kind, word] = CHOICES[choice];
                  return html`${badge(kind, word)}
                  ${destructive ? html`<span class="sub">The server calls it destructive</span>` : ''}`;
                },
              },
              {
                title: 'Change',
                isActions: true,
                cell: (tool) => (view.mayChange && tool.kind === 'tool' ? choiceForm(view.server, tool) : ''),
              },
            ],
          })
    }
  </section>`;
}

function descriptionOf({ description }: McpToolRecord['definition']): string {
  return typeof description === 'string' ? description : '';
}

function choiceForm({ id, revision }: McpServerRecord, { name, choice }: McpToolRecord): Html {
  return html`<form class="actions" method="post" action="/mcp-servers/${id}/tools/choice">
    <input type="hidden" name="tool" value="${name}" />
    ${revisionField(String(revision))}
    ${TOOL_CHOICES.filter((other) => other !== choice).map(
      (other) =>
        html`<button class="compact" name="choice" value="${other}">
          ${CHOICES[other][2]}<span class="hidden-but-read"> ${foreignText(name)}</span>
        </button>`,
    )}
  </form>`;
}
