import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inject } from 'vitest';
import { AGENT_HARDENING } from '../../sandbox/engine/agent_hardening.ts';
import { containerImages, type ContainerImages } from '../support/container_images.ts';
import { type DockerEngine, openEngine } from '../support/docker_engine.ts';
import type { Finished } from '../support/program.ts';
import { createTestCa } from '../support/test_ca.ts';

/** The first program of a container. */
export const ENTRY = '/usr/local/bin/svc-run-with-proxy-ca';
export const CA_PATH = '/etc/svc/proxy/ca.pem';

/** Options of a container, in addition to those of every launch. */
export interface StartOptions {
  /** More flags of the engine. */
  readonly flags?: readonly string[];
  /** A script that root runs first, to change the image. */
  readonly before?: string;
  /** The host path mounted as the session's CA; null for none. By default a real certificate authority. */
  readonly ca?: string | null;
}

/** The programs of the image contract in real containers, without a sidecar. */
export interface ImageBench {
  readonly engine: DockerEngine;
  readonly images: ContainerImages;
  /** The session's CA, in PEM. */
  readonly caPem: string;
  folder(name: string): string;
  /** Runs a container as a launch does, with these arguments for its first program, until it ends. */
  start(image: string, args: readonly string[], options?: StartOptions): Promise<Finished>;
  /** The same in the background; returns the container's id. */
  startDetached(image: string, args: readonly string[], options?: StartOptions): Promise<string>;
  /** Runs a program in a running container, as root. */
  exec(id: string, flags: readonly string[], command: readonly string[]): Promise<Finished>;
  /** Removes the containers and the files. */
  clear(): Promise<void>;
}

export async function openImageBench(): Promise<ImageBench> {
  const engine = await openEngine(inject('engineFolder'), inject('engineWatches'));
  const images = await containerImages(engine);
  const scratch = mkdtempSync(join(tmpdir(), 'svc-e2e-images-'));
  chmodSync(scratch, 0o755);
  const { pem, file: caFile } = await createTestCa();
  const started: string[] = [];
  const argumentsFor = (image: string, args: readonly string[], options: StartOptions): string[] => [
    ...hardening(),
    ...(options.ca === null ? [] : ['--volume', `${options.ca ?? caFile}:${CA_PATH}:ro`]),
    ...(options.flags ?? []),
    ...entry(image, args, options.before),
  ];
  return {
    engine,
    images,
    caPem: pem,
    folder: (name) => mkdtempSync(join(scratch, `${name}-`)),
    start: (image, args, options = {}) => engine.run(['run', '--rm', ...argumentsFor(image, args, options)]),
    startDetached: async (image, args, options = {}) => {
      const id = await engine.docker('run', '--detach', ...argumentsFor(image, args, options));
      started.push(id);
      return id;
    },
    exec: (id, flags, command) => engine.run(['exec', '--user', '0', ...flags, id, ...command]),
    clear: async () => {
      if (started.length > 0) await engine.docker('rm', '--force', ...started);
      rmSync(scratch, { recursive: true, force: true });
    },
  };
}

function hardening(): string[] {
  const capabilities = AGENT_HARDENING.capabilities.flatMap((name) => ['--cap-add', name]);
  const limits = ['--security-opt', 'no-new-privileges', '--cap-drop', 'ALL', ...capabilities];
  return ['--network', 'none', '--user', '0', ...limits];
}

function entry(image: string, args: readonly string[], before: string | undefined): string[] {
  if (before === undefined) return ['--entrypoint', ENTRY, image, ...args];
  return ['--entrypoint', '/bin/sh', image, '-c', `${before}\nexec ${ENTRY} "$@"`, 'sh', ...args];
}
