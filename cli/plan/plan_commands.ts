import { Option, type Command } from 'commander';
import { handle, several, type CommandLine } from '../command_line.ts';
import type { VerifyOptions } from './plan_actions.ts';
import type { PlanRunOptions } from './plan_run_action.ts';

// What the commands do is loaded when they are used: every other command starts faster.
const actions = () => import('./plan_actions.ts');

/** `svc plan ...`. */
export function addPlanCommands(line: CommandLine): void {
  const plan = line.program.command('plan').description('steps in one container, each with a sealed reach');
  const init = plan.command('init').description('write an example plan').argument('[file]', 'plan.yaml');
  handle(line, init, async (call) => (await actions()).initPlan(call));
  const freeze = plan
    .command('freeze')
    .description('seal the plan, its image and the reach of each step into plan.lock')
    .argument('[file]', 'plan.yaml');
  handle(line, freeze, async (call) => (await actions()).freezeCommand(call));
  const verify = plan
    .command('verify')
    .description('check plan, lock and image, and say what changed')
    .argument('[file]', 'plan.yaml')
    .option('--offline', 'leave the image out: ask no engine');
  handle<VerifyOptions>(line, verify, async (call) => (await actions()).verifyCommand(call));
  const show = plan
    .command('show')
    .description('print the steps and the sealed hosts of each')
    .argument('[file]', 'plan.yaml');
  handle(line, show, async (call) => (await actions()).showPlan(call));
  addRun(line, plan);
}

function addRun(line: CommandLine, plan: Command): void {
  const run = plan
    .command('run')
    .description('verify the lock, then run its steps in one container')
    .argument('[file]', 'plan.yaml')
    .addOption(
      new Option('--egress <kind>', 'sealed: the proxy is the only way out; open: the default network too')
        .choices(['sealed', 'open'])
        .default('sealed'),
    )
    .option('--step <id>', 'run only this step (may be given several times)', several)
    .option('--output <dir>', 'where outputs are kept (default: plan-output/SESSION)')
    .option('--keep-going', 'go on with the next step when one fails')
    .option('--keep', 'when the steps are over, keep the container until Ctrl-C, to look into it');
  handle<PlanRunOptions>(line, run, async (call) => (await import('./plan_run_action.ts')).runPlanCommand(call));
}
