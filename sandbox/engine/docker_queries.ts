import { z } from 'zod';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { ContainerRuntime, RuntimeFailure } from './container_runtime.ts';
import { dockerApi, type DockerApi, readReply } from './docker_api.ts';
import { containerStateOf, gatewayAddressOf, imageConfigOf, engineHostOf, parseContainers } from './docker_replies.ts';
import { type EngineQueries, imageMissing, networkMissing } from './engine_queries.ts';

const NOT_FOUND = 404;
const BAD_REQUEST = 400;
const NOT_MODIFIED = 304;

/** What Docker's API answers without a stream. */
export function dockerQueries(endpoint: string): EngineQueries {
  const api = dockerApi(endpoint);
  return {
    inspectImage: (image) => inspectImage(api, image),
    inspect: async (id) => {
      const reply = await api({ method: 'GET', path: `${containerPath(id)}/json` });
      return reply.ok && reply.value.status === NOT_FOUND ? ok(null) : readReply(reply, containerStateOf);
    },
    signal: (id, name) => done(api({ method: 'POST', path: `${containerPath(id)}/kill?signal=${name}` })),
    startDetached: (id) => done(api({ method: 'POST', path: `${containerPath(id)}/start` }), [NOT_MODIFIED]),
    remove: (id) => done(api({ method: 'DELETE', path: `${containerPath(id)}?force=1&v=1` }), [NOT_FOUND]),
    wait: async (id) => {
      const reply = await api({ method: 'POST', path: `${containerPath(id)}/wait`, timeoutMs: null });
      return readReply(reply, (body) => waitReply.parse(body).StatusCode);
    },
    listByLabel: async (label, value) => {
      const filters = encodeURIComponent(JSON.stringify({ label: [`${label}=${value}`] }));
      return readReply(
        await api({ method: 'GET', path: `/containers/json?all=1&filters=${filters}` }),
        parseContainers,
      );
    },
    host: async () => readReply(await api({ method: 'GET', path: '/info' }), engineHostOf),
    gatewayOf: async (network) => {
      const reply = await api({ method: 'GET', path: `/networks/${encodeURIComponent(network)}` });
      if (reply.ok && reply.value.status === NOT_FOUND) return err(networkMissing(network));
      return readReply(reply, gatewayAddressOf);
    },
  };
}

function containerPath(id: string): string {
  return `/containers/${encodeURIComponent(id)}`;
}

const waitReply = z.object({ StatusCode: z.number().int() });

async function inspectImage(api: DockerApi, image: string): ReturnType<ContainerRuntime['inspectImage']> {
  const path = imagePath(image);
  if (path === null) return err(imageMissing('docker', image));
  const reply = await api({ method: 'GET', path: `/images/${path}/json` });
  const isMissing = reply.ok && [NOT_FOUND, BAD_REQUEST].includes(reply.value.status);
  return isMissing ? err(imageMissing('docker', image)) : readReply(reply, imageConfigOf);
}

/** An image's reference in a path; null for one that would lead to another path, and so cannot be an image. */
function imagePath(image: string): string | null {
  const parts = image.split('/');
  return parts.some((part) => part === '' || part === '.' || part === '..')
    ? null
    : parts.map(encodeURIComponent).join('/');
}

async function done(
  call: ReturnType<DockerApi>,
  alsoFine: readonly number[] = [],
): Promise<Result<void, RuntimeFailure>> {
  const reply = await call;
  if (reply.ok && alsoFine.includes(reply.value.status)) return ok(undefined);
  return readReply(reply, () => undefined);
}
