import { html } from 'hono/html';
import type { McpServerRecord } from '../../../shared/wire/mcp/mcp_servers.ts';
import { badge, type BadgeKind } from '../components/badge.ts';
import { foreignText } from '../components/foreign_text.ts';
import { timeAgo } from '../components/time.ts';
import type { Html } from '../frame/html.ts';

type HealthState = NonNullable<McpServerRecord['health']>['state'];

const HEALTH: Readonly<Record<HealthState, readonly [BadgeKind, string]>> = {
  unknown: ['plain', 'No recent report'],
  disabled: ['plain', 'Disabled'],
  needs_consent: ['warn', 'Waits for consent'],
  needs_credentials: ['warn', 'Credential missing'],
  needs_authorisation: ['warn', 'Waits for a sign-in'],
  starting: ['accent', 'Starting'],
  running: ['good', 'Running'],
  stopped: ['plain', 'Stopped'],
  failed: ['bad', 'Failed'],
};

/** What runs, by a machine's last report, and its age. */
export function healthWords(
  { enabled, health, rule_problem: rule }: Pick<McpServerRecord, 'enabled' | 'health' | 'rule_problem'>,
  nowMs: number,
): Html {
  if (!enabled) return badge('plain', 'Disabled');
  if (rule !== null) return html`${badge('warn', 'Stopped by a rule')} <span class="sub">${foreignText(rule)}</span>`;
  if (health === null) return badge('plain', 'Not started yet');
  const [kind, word] = HEALTH[health.state];
  return html`${badge(kind, word)}
    <span class="quiet small">${timeAgo(health.checked_at, nowMs)}</span>
    ${health.last_error === null ? '' : html`<span class="sub">${foreignText(health.last_error)}</span>`}`;
}
