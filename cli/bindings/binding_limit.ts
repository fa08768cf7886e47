import type { Command } from 'commander';
import { listRequestLimits } from '../../shared/model/request_limits.ts';
import { hostBindingInput, type HostBindingRecord } from '../../shared/wire/host_binding.ts';
import { controlClient } from '../clients.ts';
import { type Call, type CommandLine, handle } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { changeBinding } from './binding_change.ts';
import { toCount } from './binding_input.ts';
import { findBinding } from './find_binding.ts';

interface LimitOptions {
  readonly perMinute?: string;
  readonly perDay?: string;
}

/** `svc binding limit`. */
export function addLimitCommand(line: CommandLine, binding: Command): void {
  const limit = binding
    .command('limit')
    .description('show or change how many requests may get the credential, on each machine')
    .argument('<host-or-id>')
    .option('--per-minute <n>', 'the most in 60 seconds, or off')
    .option('--per-day <n>', 'the most in 24 hours, or off');
  handle<LimitOptions>(line, limit, limitBinding);
}

async function limitBinding(call: Call<LimitOptions>): Promise<undefined> {
  const { context, options, print } = call;
  const { perMinute, perDay } = options;
  const changes = {
    ...(perMinute !== undefined && { requests_per_minute: countOf('--per-minute', perMinute) }),
    ...(perDay !== undefined && { requests_per_day: countOf('--per-day', perDay) }),
  };
  const client = controlClient(context, options);
  const found = await findBinding(client, call.args[0] ?? '');
  const record = Object.keys(changes).length === 0 ? found : await changeBinding(client, found, changes);
  print.data(record, () => `${record.host} (${record.id}): ${limitsOf(record)}\n`);
}

/** The limit; undefined for `off`. */
function countOf(option: string, text: string): number | undefined {
  if (text === 'off') return undefined;
  const parsed = hostBindingInput.shape.requests_per_minute.safeParse(toCount(text));
  if (parsed.success && parsed.data !== undefined) return parsed.data;
  const problem = parsed.error?.issues[0]?.message ?? 'is missing';
  throw new CliError(EXIT.usage, `${option} ${problem}`, ['To remove the limit: off']);
}

function limitsOf({ requests_per_minute: minute, requests_per_day: day }: HostBindingRecord): string {
  const limits = listRequestLimits({ minute, day }, ' requests');
  return limits.length === 0 ? 'no limit of requests' : `at most ${limits.join(' and ')}, on each machine`;
}
