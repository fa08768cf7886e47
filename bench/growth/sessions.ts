import { Svc } from '../../e2e/support/svc.ts';
import { cpuMicroseconds, residentMib } from '../load/process_stats.ts';
import type { Grown, Step } from './growth.ts';

const SIZES = [1, 10, 50];

/** Sessions of agents on one machine. Each has a CA of its own. */
export async function growSessions(): Promise<Grown> {
  const svc = await Svc.up();
  try {
    const { sidecar_pid: pid } = svc.runFile;
    const cpu: Step[] = [];
    const memory: Step[] = [];
    let open = 0;
    for (const size of SIZES) {
      const before = cpuMicroseconds(pid);
      const added = size - open;
      for (; open < size; open += 1) await svc.session();
      cpu.push({ size, cost: (cpuMicroseconds(pid) - before) / added / 1_000 });
      memory.push({ size, cost: residentMib(pid) });
    }
    return {
      title: 'Sidecar',
      amount: 'sessions',
      costs: [
        { name: 'CPU of opening one', unit: 'ms', bound: 'constant', steps: cpu },
        { name: 'memory', unit: 'MiB', bound: 'n', steps: memory },
      ],
    };
  } finally {
    await svc.stop();
  }
}
