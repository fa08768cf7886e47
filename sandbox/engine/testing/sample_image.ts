import type { ImageConfig } from '../container_runtime.ts';

/** The configuration of an image as an engine reports it; a test changes one field. */
export function sampleImage(changes: Partial<ImageConfig> = {}): ImageConfig {
  return {
    id: 'sha256:abc',
    user: '',
    entrypoint: [],
    cmd: [],
    env: [],
    workdir: '',
    architecture: 'amd64',
    labels: {},
    ...changes,
  };
}
