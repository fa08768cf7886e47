import { Option, type Command } from 'commander';
import { handle, collectValue, type CommandLine } from '../command_line.ts';
import type { InitOptions, VerifyOptions } from './plan_actions.ts';
import type { PlanRunOptions } from './run_plan_command.ts';

// The actions are loaded on use, so that other commands start faster.
const actions = () => import('./plan_actions.ts');

/** `svc plan ...`. */
export function addPlanCommands(line: CommandLine): void {
  const plan = line.program.command('plan').description('run steps in one container, each limited to its own hosts');
  const init = plan
    .command('init')
    .description('write an example plan')
    .argument('[file]', 'plan.yaml')
    .option(
      '--image <image>',
      'the image of its container (default: one that svc image build has made, if there is one)',
    );
  handle<InitOptions>(line, init, async (call) => (await actions()).initPlan(call));
  const freeze = plan
    .command('freeze')
    .description('seal the plan, its image and the hosts of each step in plan.lock')
    .argument('[file]', 'plan.yaml');
  handle(line, freeze, async (call) => (await actions()).freezeCommand(call));
  const verify = plan
    .command('verify')
    .description('check plan, lock and image, and list what changed')
    .argument('[file]', 'plan.yaml')
    .option('--offline', 'do not check the image; needs no engine');
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
      new Option('--egress <kind>', 'sealed: only the proxy can be reached; open: also the default network')
        .choices(['sealed', 'open'])
        .default('sealed'),
    )
    .option('--step <id>', 'run only this step (repeatable)', collectValue)
    .option('--output <dir>', 'folder for outputs (default: plan-output/SESSION)')
    .option('--keep-going', 'continue with the next step if one fails')
    .option('--keep', 'keep the container after the last step until Ctrl-C, to inspect it');
  handle<PlanRunOptions>(line, run, async (call) => (await import('./run_plan_command.ts')).runPlanCommand(call));
}
