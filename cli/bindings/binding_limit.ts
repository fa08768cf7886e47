import type { Command } from 'commander';
import { listRequestLimits, toRequestLimits } from '../../shared/model/request_limits.ts';
import { hostBindingInput, type HostBindingRecord } from '../../shared/wire/host_binding.ts';
import { controlClient } from '../clients.ts';
import { type Call, type CommandLine, handle } from '../command_line.ts';
import { toCount, toSize } from '../command_options.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { changeBinding } from './binding_change.ts';
import { findBinding } from './find_binding.ts';

interface LimitOptions {
  readonly perMinute?: string;
  readonly perDay?: string;
  readonly bytesPerDay?: string;
}

/** `svc binding limit`. */
export function addLimitCommand(line: CommandLine, binding: Command): void {
  const limit = binding
    .command('limit')
    .description('show or change how many requests may get the credential, and with how many bytes, on each machine')
    .argument('<host-or-id>')
    .option('--per-minute <n>', 'the most in 60 seconds, or off')
    .option('--per-day <n>', 'the most in 24 hours, or off')
    .option('--bytes-per-day <size>', 'the bytes of requests and replies in 24 hours, such as 500MB, or off');
  handle<LimitOptions>(line, limit, limitBinding);
}

async function limitBinding(call: Call<LimitOptions>): Promise<undefined> {
  const { context, options, print } = call;
  const { perMinute, perDay, bytesPerDay } = options;
  const { requests_per_minute: requests, bytes_per_day: bytes } = hostBindingInput.shape;
  const changes = {
    ...(perMinute !== undefined && { requests_per_minute: limitOf('--per-minute', requests, toCount(perMinute)) }),
    ...(perDay !== undefined && { requests_per_day: limitOf('--per-day', requests, toCount(perDay)) }),
    ...(bytesPerDay !== undefined && { bytes_per_day: limitOf('--bytes-per-day', bytes, toSize(bytesPerDay)) }),
  };
  const client = controlClient(context, options);
  const found = await findBinding(client, call.args[0] ?? '');
  const record = Object.keys(changes).length === 0 ? found : await changeBinding(client, found, changes);
  print.data(record, () => `${record.host} (${record.id}): ${limitsOf(record)}\n`);
}

/** The limit; undefined for `off`. */
function limitOf(
  option: string,
  field: typeof hostBindingInput.shape.bytes_per_day,
  value: number | string | undefined,
): number | undefined {
  if (value === 'off') return undefined;
  const parsed = field.safeParse(value);
  if (parsed.success && parsed.data !== undefined) return parsed.data;
  const problem = parsed.error?.issues[0]?.message ?? 'is missing';
  throw new CliError(EXIT.usage, `${option} ${problem}`, ['To remove the limit: off']);
}

function limitsOf(record: HostBindingRecord): string {
  const limits = listRequestLimits(toRequestLimits(record), ' requests');
  return limits.length === 0 ? 'no limit of requests or bytes' : `at most ${limits.join(' and ')}, on each machine`;
}
