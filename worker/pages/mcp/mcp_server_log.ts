import { html } from 'hono/html';
import type { StoredAuditEvent } from '../../../shared/wire/audit_events.ts';
import type { McpServerRecord } from '../../../shared/wire/mcp/mcp_servers.ts';
import { wordBadge } from '../audit/event_table.ts';
import { codeBlock } from '../components/code_block.ts';
import { dataTable } from '../components/data_table.ts';
import { definitionList } from '../components/definition_list.ts';
import { foreignText } from '../components/foreign_text.ts';
import { timeAgo } from '../components/time.ts';
import type { Html } from '../frame/html.ts';

/** The period that the page shows, and how many events it reads. */
export const LOG_MS = 7 * 86_400_000;
export const MOST_LOG_EVENTS = 200;
const SHOWN_EVENTS = 10;

/** Why a gateway did not run a server or stopped it, by the code in the event. */
const REASONS: Readonly<Record<string, string>> = {
  command_refused: 'Its command is not allowed.',
  url_refused: 'Its address must not be called.',
  consent_needed: 'Nobody has consented to it on that machine.',
  credential_missing: 'A credential that it needs is not stored.',
  credential_unavailable: 'A credential could not be retrieved in time.',
  authorisation_needed: 'The server asks for a sign-in.',
  control_plane_unavailable: 'The control plane was unreachable.',
  audit_unavailable: 'Its calls could not be recorded, and none is made without a record.',
  container_unavailable: 'It needs a container or a sandbox, and the machine can make neither.',
  install_failed: 'Its package could not be installed on that machine.',
  spawn_failed: 'The program could not be started: it may not be installed there.',
  start_timeout: 'It took too long to start.',
  handshake_failed: 'It started, and did not speak the protocol.',
  unreachable: 'It could not be reached.',
  exited: 'The program ended.',
  output_limit: 'It wrote more than allowed.',
};

/**
 * How a server runs, as gateways reported it. Its output stays on the machine; the page shows the command to read it
 * there.
 */
export function logPanel(server: McpServerRecord, events: readonly StoredAuditEvent[], nowMs: number): Html {
  const isFull = events.length >= MOST_LOG_EVENTS;
  return html`<section class="panel flush" id="log" aria-labelledby="log-title">
    <div class="panel-head">
      <h2 id="log-title">What happened</h2>
      <span class="quiet small">The last seven days, as gateways reported</span>
    </div>
    <div class="padded stack">
      ${definitionList([
        ['Started', times(events, ['mcp.server.started'], isFull)],
        ['Failed', times(events, ['mcp.server.failed', 'mcp.server.refused'], isFull)],
      ])}
      ${server.mode === 'local' ? writtenWords(server) : ''}
    </div>
    ${events.length === 0 ? html`<p class="quiet padded">No gateway has tried to start it.</p>` : eventTable(events.slice(0, SHOWN_EVENTS), nowMs)}
  </section>`;
}

function writtenWords({ name }: McpServerRecord): Html {
  return html`<p class="quiet">
      Its output stays on the machine that runs it, because it may be private; only the last line of a failure is shown
      here, to you alone. To read the rest there, with credentials masked:
    </p>
    ${codeBlock(`svc mcp logs ${name}`)}`;
}

function times(events: readonly StoredAuditEvent[], types: readonly string[], isFull: boolean): string {
  const count = events.filter(({ type }) => types.includes(type)).length;
  if (count === 0) return 'never';
  return `${count === 1 ? 'once' : `${count} times`}${isFull ? ', or more' : ''}`;
}

function eventTable(events: readonly StoredAuditEvent[], nowMs: number): Html {
  return dataTable<StoredAuditEvent>({
    caption: 'Starts, ends and failures, newest first',
    rows: events,
    key: ({ id }) => id,
    columns: [
      { title: 'Time', cell: ({ time }) => timeAgo(time, nowMs) },
      { title: 'What', cell: (event) => wordBadge(event) },
      { title: 'Why', cell: ({ data }) => reasonWords(data['svc.mcp.reason']) },
      {
        title: 'Event',
        isActions: true,
        cell: ({ id, type, time }) =>
          html`<a class="nowrap" href="/audit/${id}">Show<span class="hidden-but-read"> ${type} at ${time}</span></a>`,
      },
    ],
  });
}

function reasonWords(reason: string | undefined): Html | string {
  if (reason === undefined) return '';
  return (Object.hasOwn(REASONS, reason) ? REASONS[reason] : undefined) ?? foreignText(reason);
}
