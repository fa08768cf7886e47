import { z } from 'zod';
import { parseJson } from '../../shared/model/json.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { Environment } from '../launch/session_environment.ts';
import { HOME_LABEL } from './container_labels.ts';
import type { RuntimeFailure } from './container_runtime.ts';
import { csvField } from './docker_arguments.ts';
import { engineNameOf } from './engine_address.ts';
import { engineProgramAt } from './engine_cli.ts';

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
  const docker = engineProgramAt(env, endpoint);
  const isPodman = engineNameOf(endpoint) === 'podman';
  return {
    create: async (home, homeLabel) => {
      const labels = labelsOf(home, homeLabel);
      // podman reads this option as comma-separated values.
      const quote = isPodman ? csvField : (text: string): string => text;
      const flags = Object.entries(labels).flatMap(([label, value]) => ['--label', quote(`${label}=${value}`)]);
      const made = await docker.read(['volume', 'create', ...flags, '--', home.name], { parse: doNothing });
      // podman refuses one that is there already.
      if (!made.ok && !(isPodman && made.error.reason === 'engine_refused')) return made;
      const found = await docker.read(['volume', 'inspect', '--', home.name], { parse: parseVolume });
      if (!found.ok) return made.ok ? found : made;
      return isMadeWith(labels, found.value) ? ok(undefined) : err(foreignVolume(home.name));
    },
    list: (homeLabel) => {
      const labels = [AGENT_LABEL, FOLDER_LABEL].map((label) =>
        isPodman ? `index .Labels "${label}"` : `.Label "${label}"`,
      );
      const format = ['.Name', ...labels].map((field) => `{{${field}}}`);
      const filters = [`label=${HOME_LABEL}=${homeLabel}`, `label=${AGENT_LABEL}`].flatMap((each) => [
        '--filter',
        each,
      ]);
      return docker.read(['volume', 'ls', ...filters, '--format', format.join('\t')], { parse: parseVolumes });
    },
    remove: (name) => docker.read(['volume', 'rm', '--', name], { parse: doNothing }),
  };
}

function labelsOf({ agent, folder }: HomeVolume, homeLabel: string): Readonly<Record<string, string>> {
  // As JSON: a folder's name may have a line break in it.
  return { [HOME_LABEL]: homeLabel, [AGENT_LABEL]: agent, [FOLDER_LABEL]: JSON.stringify(folder) };
}

/** Options of the driver `local` can make a volume of any folder. */
const inspected = z.tuple([
  z.object({
    Driver: z.string(),
    Labels: z.record(z.string(), z.string()).nullish(),
    Options: z.record(z.string(), z.string()).nullish(),
  }),
]);
type Inspected = z.output<typeof inspected>[0];

function parseVolume(text: string): Inspected | null {
  return inspected.safeParse(parseJson(text)).data?.[0] ?? null;
}

function isMadeWith(labels: Readonly<Record<string, string>>, volume: Inspected | null): boolean {
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

function parseVolumes(text: string): readonly HomeVolume[] {
  const lines = text.split('\n').filter((line) => line !== '');
  return lines.map((line) => {
    const [name = '', agent = '', folder = ''] = line.split('\t');
    const parsed = z.string().safeParse(parseJson(folder));
    return { name, agent, folder: parsed.data ?? '' };
  });
}
