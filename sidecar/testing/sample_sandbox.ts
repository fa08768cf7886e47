import type { Sandbox } from '../session/sandbox.ts';

/** What the sidecar knows of a container; a test changes one field. */
export const SAMPLE_SANDBOX: Sandbox = {
  mode: 'docker',
  image: 'demo:1',
  imageId: `sha256:${'a'.repeat(64)}`,
  runtime: { program: 'docker', endpoint: 'unix:///run/test.sock' },
  detached: false,
  egress: 'open',
};
