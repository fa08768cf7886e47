import type { ChildProcess } from 'node:child_process';
import { AGENT_HARDENING } from '../engine/agent_hardening.ts';
import { LISTENER_PORT } from '../launch/container_environment.ts';
import { containerLabels } from '../engine/container_labels.ts';
import type { BindMount, ContainerSpec } from '../engine/container_runtime.ts';
import { LaunchError, valueOrLaunchError } from '../launch/launch_error.ts';
import type { ImageFacts } from '../contract/image_contract_facts.ts';
import type { PlanEgress } from '../../shared/model/egress.ts';
import type { SandboxSession } from '../launch/launch_ports.ts';
import type { PlanPorts } from './plan_ports.ts';
import { parseSweepCounts, PLAIN_PATH_SCRIPT, READY_SCRIPT, SWEEP_SCRIPT } from './process_sweep.ts';
import { execScript, type QuietEnd } from './exec_script.ts';

/** The facts of an image that steps can run in. Its programs are named by their full paths. */
type PlanImage = Pick<ImageFacts, 'imageId' | 'agentUser' | 'uid' | 'home' | 'entry' | 'stepRunner'>;

/** The only container of a plan, checked but not created yet. */
export interface PlanBoot {
  readonly home: string;
  readonly image: PlanImage;
  readonly egress: PlanEgress;
  readonly mounts: readonly BindMount[];
}

const CA_PATH = '/etc/svc/proxy/ca.pem';
const READY_TIMEOUT_MS = 70_000;
const SWEEP_TIMEOUT_MS = 20_000;
const SWEEP_ATTEMPTS = 5;
/** How often it is looked whether the dead are reaped. */
const REAP_ATTEMPTS = 50;
const BETWEEN_SWEEPS_MS = 200;
/** Process limit, far lower than an agent's: an endless fork must not harm the machine. */
const PIDS_LIMIT = 1024;

/** The spec of a plan's container. It contains no token, and starts no process of the agent's user. */
function planContainerSpec(boot: PlanBoot, session: SandboxSession, sentinel: string): ContainerSpec {
  return {
    image: boot.image.imageId,
    name: `svc-plan-${session.sessionId.replace(/^ses_/, '')}`,
    labels: containerLabels(boot.home, session.sessionId),
    env: {
      SVC_AGENT_USER: boot.image.agentUser,
      SVC_IMAGE_SENTINEL: sentinel,
      ...(session.listener === 'namespace' && { SVC_PROXY_WAIT: `127.0.0.1:${LISTENER_PORT}` }),
    },
    mounts: [...boot.mounts, { source: session.caPemPath, target: CA_PATH, readOnly: true }],
    workdir: null,
    user: '0',
    entrypoint: boot.image.entry,
    command: ['--hold'],
    tty: false,
    stdin: false,
    network: boot.egress === 'sealed' ? 'none' : null,
    // The first process must keep the container running: a sweep ends all others.
    hardening: { ...AGENT_HARDENING, init: false, pidsLimit: PIDS_LIMIT },
    enginesProxies: 'left_out',
  };
}

/** The running container of a plan, set up for steps. */
export class PlanContainer {
  readonly id: string;
  readonly #ports: PlanPorts;
  readonly image: PlanImage;
  readonly #sentinel: string;
  /** The last sweep that was asked for. Two at once would end each other's programs, and the later one those of a next step. */
  #lastSweep: Promise<unknown> = Promise.resolve();

  constructor(ports: PlanPorts, id: string, facts: { readonly image: PlanImage; readonly sentinel: string }) {
    this.#ports = ports;
    this.id = id;
    this.image = facts.image;
    this.#sentinel = facts.sentinel;
  }

  /** Waits until the container is set up for steps. */
  async waitUntilReady(): Promise<void> {
    const env = { SVC_STEP_SENTINEL: this.#sentinel };
    const said = await this.#runScript(READY_SCRIPT, { env, timeoutMs: READY_TIMEOUT_MS });
    if (said.code !== 0 || said.stdout !== 'ready\n') throw await this.#notReady(said);
  }

  /** Starts a step's command as the agent's user. No shell reads its words. */
  startStep(command: readonly string[], env: Readonly<Record<string, string>>): ChildProcess {
    return this.#ports.runtime.exec(this.id, {
      command: [this.image.stepRunner, '--', ...command],
      env: { ...env, SVC_STEP_SENTINEL: this.#sentinel, SVC_IMAGE_SENTINEL: '' },
      user: '0',
      workdir: this.image.home,
      tty: false,
      stdin: false,
      stdio: 'pipe',
    });
  }

  /**
   * Ends every process except the first. False if one may still run. The dead are waited for, because a step that left many
   * would leave the next one no process ids.
   */
  sweep(): Promise<boolean> {
    const swept = this.#lastSweep.then(() => this.#sweepNow());
    this.#lastSweep = swept;
    return swept;
  }

  async #sweepNow(): Promise<boolean> {
    // The first process ends the others: a program started for that gets no process id, or no processor time, from an endless
    // fork. What was reached is counted below, also if the signal did not arrive.
    await this.#ports.runtime.signal(this.id, 'SIGUSR1');
    let isClean = false;
    for (let attempt = 1; attempt <= (isClean ? REAP_ATTEMPTS : SWEEP_ATTEMPTS); attempt += 1) {
      const said = await this.#runScript(SWEEP_SCRIPT, { timeoutMs: SWEEP_TIMEOUT_MS });
      const counts = said.code === 0 ? parseSweepCounts(said.stdout) : null;
      isClean = counts?.left === 0;
      if (isClean && counts?.dead === 0) return true;
      await this.#ports.pause(BETWEEN_SWEEPS_MS);
    }
    return isClean;
  }

  /** Whether a path and all its parent folders exist and are not links. */
  async kindOfPath(path: string): Promise<'plain' | 'link' | 'missing' | 'unknown'> {
    const said = await this.#runScript(PLAIN_PATH_SCRIPT, { args: [path], timeoutMs: SWEEP_TIMEOUT_MS });
    const kind = said.code === 0 ? said.stdout.trim() : '';
    return kind === 'plain' || kind === 'link' || kind === 'missing' ? kind : 'unknown';
  }

  archiveOf(path: string): ChildProcess {
    return this.#ports.archiveOf(this.id, path);
  }

  #runScript(
    script: string,
    options: { readonly args?: readonly string[]; readonly env?: Record<string, string>; readonly timeoutMs: number },
  ): Promise<QuietEnd> {
    return execScript(this.#ports.runtime, this.id, script, { ...options, schedule: this.#ports.schedule });
  }

  async #notReady(said: QuietEnd): Promise<LaunchError> {
    const state = await this.#ports.runtime.inspect(this.id);
    const ended = state.ok && state.value?.running === false ? `it ended with exit code ${state.value.exitCode}` : null;
    if (ended !== null) await showLogs(this.#ports, this.id);
    const why = ended ?? (said.stderr.trim() === '' ? 'it did not say why' : said.stderr.trim().slice(0, 600));
    return new LaunchError({
      message: `the container was not set up for steps: ${why}`,
      fixes: ['docs/image-contract.md says what the exit codes of the start mean.'],
    });
  }
}

/** Creates and starts the container of a session. `onMade` is called before the start, so that it is removed in any case. */
export async function bootPlanContainer(
  ports: PlanPorts,
  boot: PlanBoot,
  session: SandboxSession,
  onMade: (containerId: string) => void,
): Promise<PlanContainer> {
  const sentinel = ports.newSentinel();
  const id = valueOrLaunchError(await ports.runtime.create(planContainerSpec(boot, session, sentinel)));
  onMade(id);
  // Recorded before it starts, so that it is found after a crash.
  await ports.sessions.recordContainer(session.sessionId, id);
  valueOrLaunchError(await ports.runtime.startDetached(id));
  const container = new PlanContainer(ports, id, { image: boot.image, sentinel });
  const pid = valueOrLaunchError(await ports.runtime.pidOf(id));
  if (pid !== null) await ports.sessions.openListener(session.sessionId, pid, false);
  await container.waitUntilReady();
  return container;
}

/** Prints the last output of the container with our own messages. */
function showLogs({ runtime }: PlanPorts, id: string): Promise<void> {
  return new Promise((resolve) => {
    const child = runtime.logs(id, { follow: false });
    child.once('error', () => resolve());
    child.once('close', () => resolve());
  });
}
