import { z } from 'zod';
import { parseJson } from '../../shared/model/json.ts';
import type { Result } from '../../shared/model/result.ts';
import type { Environment } from '../launch/session_environment.ts';
import { HOME_LABEL } from './container_labels.ts';
import type { RuntimeFailure } from './container_runtime.ts';
import { dockerProgram } from './engine_cli.ts';

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
  /** Creates the volume unless it exists. */
  create(home: HomeVolume, homeLabel: string): Promise<Result<void, RuntimeFailure>>;
  /** Those of the state directory with this label. */
  list(homeLabel: string): Promise<Result<readonly HomeVolume[], RuntimeFailure>>;
  /** The engine refuses while a container uses the volume. */
  remove(name: string): Promise<Result<void, RuntimeFailure>>;
}

const doNothing = (): undefined => undefined;

export function homeVolumesAt(env: Environment, endpoint: string): HomeVolumes {
  const docker = dockerProgram(env, endpoint);
  return {
    create: ({ name, agent, folder }, homeLabel) => {
      // As JSON: a folder's name may have a line break in it.
      const labels = { [HOME_LABEL]: homeLabel, [AGENT_LABEL]: agent, [FOLDER_LABEL]: JSON.stringify(folder) };
      const flags = Object.entries(labels).flatMap(([label, value]) => ['--label', `${label}=${value}`]);
      return docker.read(['volume', 'create', ...flags, '--', name], { parse: doNothing });
    },
    list: (homeLabel) => {
      const format = ['.Name', `.Label "${AGENT_LABEL}"`, `.Label "${FOLDER_LABEL}"`].map((field) => `{{${field}}}`);
      const filters = [`label=${HOME_LABEL}=${homeLabel}`, `label=${AGENT_LABEL}`].flatMap((each) => [
        '--filter',
        each,
      ]);
      return docker.read(['volume', 'ls', ...filters, '--format', format.join('\t')], { parse: parseVolumes });
    },
    remove: (name) => docker.read(['volume', 'rm', '--', name], { parse: doNothing }),
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
