import { setTimeout as pause } from 'node:timers/promises';
import { type NodeUnderTest, startOnNode } from '../../e2e/runtimes/programs.ts';
import { TestSidecar } from '../../e2e/runtimes/sidecar_client.ts';
import { cpuMicroseconds, residentMib } from '../load/process_stats.ts';
import type { Grown, Step } from './growth.ts';

const SIZES = [10, 100, 1_000];
const SETTLE_MS = 5_000;
const SECONDS = 20;
const WAIT_SECONDS = 25;

/** Sidecars that wait for a change of their policy, as all do that have nothing else to do. */
export async function growPolling(): Promise<Grown> {
  const control = await startOnNode();
  try {
    return await measure(control);
  } finally {
    await control.stop();
  }
}

async function measure(control: NodeUnderTest): Promise<Grown> {
  const done = new AbortController();
  const waiting: Promise<void>[] = [];
  const cpu: Step[] = [];
  const memory: Step[] = [];
  for (const size of SIZES) {
    while (waiting.length < size) {
      const sidecar = await TestSidecar.make((path, init) =>
        fetch(control.url + path, { ...init, signal: done.signal }),
      );
      await sidecar.enrol(control.localKey);
      waiting.push(pollUntil(done.signal, sidecar));
    }
    await pause(SETTLE_MS);
    const before = cpuMicroseconds(control.pid);
    await pause(SECONDS * 1_000);
    cpu.push({ size, cost: (cpuMicroseconds(control.pid) - before) / SECONDS / size });
    memory.push({ size, cost: residentMib(control.pid) });
  }
  done.abort();
  await Promise.all(waiting);
  return {
    title: 'Control plane',
    amount: 'sidecars that wait',
    costs: [
      { name: 'CPU of each in a second', unit: 'us', bound: 'constant', steps: cpu },
      { name: 'memory', unit: 'MiB', bound: 'n', steps: memory },
    ],
  };
}

async function pollUntil(signal: AbortSignal, sidecar: TestSidecar): Promise<void> {
  let etag = '';
  while (!signal.aborted) {
    try {
      const target = etag === '' ? '/v1/sidecar/snapshot' : `/v1/sidecar/snapshot?wait=${WAIT_SECONDS}`;
      const reply = await sidecar.call('GET', target, { headers: { 'if-none-match': etag } });
      await reply.text();
      etag = reply.headers.get('etag') ?? '';
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}
