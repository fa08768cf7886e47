import { spawnSync } from 'node:child_process';
import {
  type Bubblewrap,
  findBubblewrap,
  kernelFacts,
  machineFacts,
  whyNoSandbox,
} from '../../sandbox/bubblewrap/find_bubblewrap.ts';
import { listGuarded, planSandbox, type SandboxPlan } from '../../sandbox/bubblewrap/plan_sandbox.ts';
import { MACHINE_FILES } from '../../sandbox/bubblewrap/file_view.ts';
import { holdPlaceholders } from '../../sandbox/bubblewrap/placeholders.ts';
import { handle, type Call, type CommandLine } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { requestFor } from './host_sandbox.ts';

/** `svc sandbox`. */
export function addSandboxCommands(line: CommandLine): void {
  const sandbox = line.program.command('sandbox').description('the sandbox of `svc run --sandbox` and of agents');
  const check = sandbox
    .command('check')
    .description('try in a sandbox of this folder what can be read, written and reached');
  handle(line, check, (call) => Promise.resolve(checkSandbox(call)));
}

interface Row {
  readonly what: string;
  readonly name: string;
  readonly result: 'writable' | 'readable' | 'hidden' | 'none';
}

/** Tries each path, and prints the names of those that can be read or written, then whether there is a route. */
const PROBE = `
for path; do
  if [ -d "$path" ] && [ -w "$path" ]; then echo "w $path"
  elif [ -d "$path" ] && [ -n "$(ls -A "$path" 2>/dev/null)" ]; then echo "r $path"
  elif [ -f "$path" ] && [ -r "$path" ]; then echo "r $path"
  fi
done
[ "$(wc -l < /proc/net/route)" -gt 1 ] && echo "route"
exit 0`;

function checkSandbox(call: Call): undefined {
  const { context, print } = call;
  const found = findBubblewrap(machineFacts(context.env['PATH'] ?? ''));
  if (!found.ok) throw new CliError(EXIT.failed, found.error.message, found.error.fixes);
  const wanted = { readable: [], writable: [], agent: null };
  const request = requestFor(call, wanted, { command: 'sh', folder: null });
  const planned = planSandbox(request, MACHINE_FILES);
  if (!planned.ok) throw new CliError(EXIT.failed, planned.error.message, planned.error.fixes);
  const shown = planned.value.shown.map(({ path }) => path);
  const guarded = listGuarded(request, context.userHome, MACHINE_FILES);
  const names = new Map(guarded.map(({ path, name }) => [path, name]));
  const said = probe(found.value, planned.value, [...shown, context.userHome, ...names.keys()]);
  const stateOf = (path: string): Row['result'] =>
    said.has(`w ${path}`) ? 'writable' : said.has(`r ${path}`) ? 'readable' : 'hidden';
  const rows: readonly Row[] = [
    ...shown.map((path) => ({ what: 'shown', name: path, result: stateOf(path) })),
    ...[...names].map(([path, name]) => ({ what: name, name: path, result: secretState(said, path) })),
    { what: 'network', name: 'a route out, besides the proxy', result: said.has('route') ? 'readable' : 'none' },
  ];
  print.rows(rows, rows, COLUMNS, 'nothing');
  const open = rows.filter(({ what, result }) => what !== 'shown' && result !== 'hidden' && result !== 'none');
  if (open.length > 0) throw new CliError(EXIT.failed, `the sandbox does not close ${open.length} of these`);
  return undefined;
}

/** An empty folder in memory stands for one that is hidden, and may be written: nothing of it is kept. */
function secretState(said: ReadonlySet<string>, path: string): Row['result'] {
  return said.has(`r ${path}`) ? 'readable' : 'hidden';
}

const COLUMNS = [
  { title: 'RESULT', cell: ({ result }: Row) => result },
  { title: 'WHAT', cell: ({ what }: Row) => what },
  { title: 'NAME', cell: ({ name }: Row) => name },
];

function probe({ program }: Bubblewrap, plan: SandboxPlan, paths: readonly string[]): ReadonlySet<string> {
  const release = holdPlaceholders(plan.placeholders);
  const args = [...plan.args, '--', '/bin/sh', '-c', PROBE, 'sh', ...paths];
  const tried = spawnSync(program, args, { encoding: 'utf8' });
  release();
  if (tried.status === 0) return new Set(tried.stdout.split('\n'));
  const { message, fixes } = whyNoSandbox(kernelFacts(tried.stderr));
  throw new CliError(EXIT.failed, message, fixes);
}
