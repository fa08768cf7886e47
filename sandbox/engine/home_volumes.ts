import { z } from 'zod';
import { parseJson } from '../../shared/model/json.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { Environment } from '../launch/session_environment.ts';
import { HOME_LABEL } from './container_labels.ts';
import type { RuntimeFailure } from './container_runtime.ts';
import { csvField } from './docker_arguments.ts';
import { dockerApi, type DockerApi, readReply } from './docker_api.ts';
import { podmanStore } from './engine_address.ts';
import { podmanProgram, type EngineProgram } from './engine_cli.ts';

/** The labels of the volume that holds an agent's home; {@link HOME_LABEL} says whose it is. */
export const AGENT_LABEL = 'svc.agent';
const FOLDER_LABEL = 'svc.folder';

/** A volume with the home of an agent. */
export interface HomeVolume {
  readonly name: string;
  readonly agent: string;
  /** The project folder that it is for. */
  readonly folder: string;
}

/** The engine's volumes with homes of agents. */
interface HomeVolumes {
  /** Creates the volume unless it exists. One that svc did not make for this home is refused: it could be any folder of the machine. */
  create(home: HomeVolume, homeLabel: string): Promise<Result<void, RuntimeFailure>>;
  /** Those of the state directory with this label. */
  list(homeLabel: string): Promise<Result<readonly HomeVolume[], RuntimeFailure>>;
  /** The engine refuses while a container uses the volume. */
  remove(name: string): Promise<Result<void, RuntimeFailure>>;
}

const doNothing = (): undefined => undefined;

export function homeVolumesAt(env: Environment, endpoint: string): HomeVolumes {
  const store = podmanStore(endpoint);
  return store === null ? dockerVolumes(dockerApi(endpoint)) : podmanVolumes(podmanProgram(env, store));
}

function dockerVolumes(api: DockerApi): HomeVolumes {
  return {
    create: async (home, homeLabel) => {
      const labels = labelsOf(home, homeLabel);
      const body = { Name: home.name, Labels: labels };
      const made = readReply(await api({ method: 'POST', path: '/volumes/create', body }), doNothing);
      if (!made.ok) return made;
      // The reply may be about one that was there already, and after a restart of the engine without its labels.
      const reply = await api({ method: 'GET', path: `/volumes/${encodeURIComponent(home.name)}` });
      const found = readReply(reply, (about) => volumeReply.parse(about));
      if (!found.ok) return found;
      return requireOwn(home, labels, found.value);
    },
    list: async (homeLabel) => {
      const filters = encodeURIComponent(JSON.stringify({ label: [`${HOME_LABEL}=${homeLabel}`, AGENT_LABEL] }));
      return readReply(await api({ method: 'GET', path: `/volumes?filters=${filters}` }), parseVolumes);
    },
    remove: async (name) =>
      readReply(await api({ method: 'DELETE', path: `/volumes/${encodeURIComponent(name)}` }), doNothing),
  };
}

function podmanVolumes(podman: EngineProgram): HomeVolumes {
  return {
    create: async (home, homeLabel) => {
      const labels = labelsOf(home, homeLabel);
      // The option is read as comma-separated values.
      const flags = Object.entries(labels).flatMap(([label, value]) => ['--label', csvField(`${label}=${value}`)]);
      const made = await podman.read(['volume', 'create', ...flags, '--', home.name], { parse: doNothing });
      // It refuses one that is there already.
      if (!made.ok && made.error.reason !== 'engine_refused') return made;
      const found = await podman.read(['volume', 'inspect', '--', home.name], { parse: parseInspected });
      if (!found.ok) return made.ok ? found : made;
      return requireOwn(home, labels, found.value);
    },
    list: (homeLabel) => {
      const fields = ['.Name', ...[AGENT_LABEL, FOLDER_LABEL].map((label) => `index .Labels "${label}"`)];
      const format = fields.map((field) => `{{${field}}}`).join('\t');
      const filters = [`label=${HOME_LABEL}=${homeLabel}`, `label=${AGENT_LABEL}`].flatMap((each) => [
        '--filter',
        each,
      ]);
      return podman.read(['volume', 'ls', ...filters, '--format', format], { parse: parseVolumeLines });
    },
    remove: (name) => podman.read(['volume', 'rm', '--', name], { parse: doNothing }),
  };
}

function labelsOf({ agent, folder }: HomeVolume, homeLabel: string): Readonly<Record<string, string>> {
  // As JSON: a folder's name may have a line break in it.
  return { [HOME_LABEL]: homeLabel, [AGENT_LABEL]: agent, [FOLDER_LABEL]: JSON.stringify(folder) };
}

/** Options of the driver `local` can make a volume of any folder. */
const volumeReply = z.object({
  Driver: z.string(),
  Labels: z.record(z.string(), z.string()).nullish(),
  Options: z.record(z.string(), z.string()).nullish(),
});
type VolumeReply = z.output<typeof volumeReply>;

function parseInspected(text: string): VolumeReply | null {
  return z.tuple([volumeReply]).safeParse(parseJson(text)).data?.[0] ?? null;
}

function requireOwn(
  { name }: HomeVolume,
  labels: Readonly<Record<string, string>>,
  volume: VolumeReply | null,
): Result<void, RuntimeFailure> {
  return isMadeWith(labels, volume) ? ok(undefined) : err(foreignVolume(name));
}

function isMadeWith(labels: Readonly<Record<string, string>>, volume: VolumeReply | null): boolean {
  if (volume === null || volume.Driver !== 'local' || Object.keys(volume.Options ?? {}).length > 0) return false;
  return Object.entries(labels).every(([label, value]) => volume.Labels?.[label] === value);
}

function foreignVolume(name: string): RuntimeFailure {
  return {
    reason: 'engine_refused',
    message: `the volume ${name} is there already, and svc did not make it for this home`,
    fixes: [`See what it is: docker volume inspect ${name}`, `If nothing in it is needed: docker volume rm ${name}`],
  };
}

const volumesReply = z.object({ Volumes: z.array(volumeReply.extend({ Name: z.string() })).nullable() });

function parseVolumes(reply: unknown): readonly HomeVolume[] {
  const volumes = volumesReply.parse(reply).Volumes ?? [];
  return volumes.map(({ Name, Labels }) => homeVolume(Name, Labels?.[AGENT_LABEL], Labels?.[FOLDER_LABEL]));
}

function parseVolumeLines(text: string): readonly HomeVolume[] {
  const lines = text.split('\n').filter((line) => line !== '');
  return lines.map((line) => {
    const [name = '', agent, folder] = line.split('\t');
    return homeVolume(name, agent, folder);
  });
}

function homeVolume(name: string, agent = '', folder = ''): HomeVolume {
  return { name, agent, folder: z.string().safeParse(parseJson(folder)).data ?? '' };
}
