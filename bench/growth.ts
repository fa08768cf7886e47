/**
 * How cost grows with the amount of data: audit events and waiting sidecars in the control plane, bindings, open
 * tunnels and sessions in the sidecar.
 * Each part measures at ten times the amount of the step before, and compares: a part whose cost grows faster than n log n is
 * named, and the exit status is 1. Costs are CPU time, so that a busy machine changes little.
 * Run with `node bench/growth.ts [audit] [bindings] [tunnels] [sessions] [polling] [--events 1000000]`.
 */
import { parseArgs } from 'node:util';
import { growAudit } from './growth/audit.ts';
import { growBindings } from './growth/bindings.ts';
import { growPolling } from './growth/polling.ts';
import { growSessions } from './growth/sessions.ts';
import { growTunnels } from './growth/tunnels.ts';
import { steeperThan, type Grown } from './growth/growth.ts';
import { figure, table } from './table.ts';

const { values, positionals } = parseArgs({
  options: { events: { type: 'string', default: '1000000' } },
  allowPositionals: true,
});

const PARTS: Readonly<Record<string, () => Promise<Grown>>> = {
  audit: () => growAudit(Number(values.events)),
  bindings: growBindings,
  tunnels: growTunnels,
  sessions: growSessions,
  polling: growPolling,
};

function print({ title, amount, costs }: Grown): void {
  const rows = costs.map(({ name, unit, bound, steps }) => {
    const verdict = steeperThan(bound, steps) ? `**steeper than ${bound}**` : bound;
    return [`${name}, ${unit}`, ...steps.map(({ cost }) => figure(cost)), verdict];
  });
  const header = [
    `${title}: ${amount}`,
    ...(costs[0]?.steps.map(({ size }) => size.toLocaleString('en')) ?? []),
    'at most',
  ];
  process.stdout.write(`${table(header, rows)}\n\n`);
  if (costs.some(({ bound, steps }) => steeperThan(bound, steps))) process.exitCode = 1;
}

const unknown = positionals.find((name) => !(name in PARTS));
if (unknown !== undefined) {
  process.stderr.write(`usage: node bench/growth.ts [${Object.keys(PARTS).join('] [')}] [--events N]\n`);
  process.exitCode = 2;
} else {
  const chosen = positionals.length === 0 ? Object.keys(PARTS) : positionals;
  for (const name of chosen) {
    const part = PARTS[name];
    if (part !== undefined) print(await part());
  }
}
