import { afterAll } from 'vitest';
import { stopRunning } from './svc.ts';

// Runs in every test file: one that fails half-way leaves no process behind.
afterAll(stopRunning);
