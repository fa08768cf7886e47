import { afterAll } from 'vitest';
import { stopRunning } from './svc.ts';

// Runs in every end-to-end test file.

/** Where Node keeps the agent by which `fetch` sends. There is one after the first call. */
const AGENT = Symbol.for('undici.globalDispatcher.1');
await fetch('data:,');
const { constructor: Agent } = Reflect.get(globalThis, AGENT);
// Without kept connections: on a busy machine a test could send on one that its server has just closed for being idle.
Reflect.set(globalThis, AGENT, new Agent({ pipelining: 0 }));

// A test file that fails midway leaves no process behind.
afterAll(stopRunning);
