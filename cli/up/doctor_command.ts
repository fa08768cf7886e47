import { runChecks } from './doctor_checks.ts';
import type { Finding } from './finding.ts';
import { handle, type Call, type CommandLine } from '../command_line.ts';
import { EXIT } from '../exit_codes.ts';
import { homeOf } from './home.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import { createPainter, type Style } from '../terminal/output.ts';

const STYLE: { readonly [L in Finding['level']]: Style } = { ok: 'green', warning: 'yellow', problem: 'red' };

/** `svc doctor`. */
export function addDoctorCommand(line: CommandLine): void {
  const doctor = line.program
    .command('doctor')
    .description('check keys, file modes, ports, channel, clock, and whether installed clients trust the CA');
  handle(line, doctor, diagnose);
}

async function diagnose(call: Call): Promise<number> {
  const findings = await runChecks(call, homeOf(call.context, call.options));
  const failed = findings.some((finding) => finding.level === 'problem');
  call.print.data({ ok: !failed, findings }, () => findings.map((finding) => formatFinding(call, finding)).join(''));
  return failed ? EXIT.failed : EXIT.ok;
}

function formatFinding(call: Call, finding: Finding): string {
  if (!call.print.person)
    return `${[finding.level, finding.check, finding.text, finding.fix ?? ''].map(toPrintable).join('\t')}\n`;
  const paint = createPainter(call.context.stdout, call.context.env);
  const fix = finding.fix === undefined ? '' : `           fix: ${toPrintable(finding.fix)}\n`;
  return `${paint(STYLE[finding.level], finding.level.padEnd(8))} ${finding.check}: ${toPrintable(finding.text)}\n${fix}`;
}
