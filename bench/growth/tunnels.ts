import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CleanUp } from '../clean_up.ts';
import { startNginx } from '../load/nginx.ts';
import { measure, subjectOf } from '../measure.ts';
import { startSvc } from '../peers/svc.ts';
import type { Cost, Grown, Step } from './growth.ts';

const SIZES = [1, 10, 100, 1_000];
/** The handshakes of all tunnels come first, and are a small part of the CPU time of a run this long. */
const secondsFor = (tunnels: number): number => 4 + Math.ceil(tunnels / 40);

/** Open tunnels, each with one request after the other. */
export async function growTunnels(): Promise<Grown> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-bench-growth-'));
  const cleanUp = new CleanUp();
  try {
    const upstream = cleanUp.add(await startNginx(directory));
    const svc = cleanUp.add(await startSvc({ directory, upstream }));
    const subject = await subjectOf(svc, upstream, cleanUp);
    const cpu: Step[] = [];
    const memory: Step[] = [];
    for (const size of SIZES) {
      const load = {
        kind: 'load',
        id: 'keepalive_32',
        title: `${size} tunnels`,
        path: '/small',
        connections: size,
        newTunnel: false,
      } as const;
      const found = await measure(load, subject, upstream, secondsFor(size));
      if (found === null) throw new Error('the load could not be measured');
      if (found.failed > 0) throw new Error(`${found.failed} requests failed with ${size} tunnels`);
      cpu.push({ size, cost: found.cpuMicroseconds ?? 0 });
      memory.push({ size, cost: found.residentMib ?? 0 });
    }
    const costs: Cost[] = [
      { name: 'CPU of a request', unit: 'us', bound: 'constant', steps: cpu },
      { name: 'memory', unit: 'MiB', bound: 'n', steps: memory },
    ];
    return { title: 'Sidecar', amount: 'open tunnels', costs };
  } finally {
    await cleanUp.run();
    rmSync(directory, { recursive: true, force: true });
  }
}
