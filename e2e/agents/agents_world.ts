import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Svc } from '../support/svc.ts';
import { createTestCa } from '../support/test_ca.ts';
import { installAgents } from './installed_agents.ts';
import { type AgentServices, SERVICE_HOSTS, startServices } from './services.ts';

/** The installed agents, svc, and services that stand in for those of the agents. */
export interface AgentsWorld {
  /** The folder with the agents' programs. */
  readonly programs: string;
  readonly services: AgentServices;
  readonly svc: Svc;
  /** A folder for the homes of the agents. */
  readonly scratch: string;
  stop(): Promise<void>;
}

/** Null if the agents are not installed. The services are started by these arguments, after their certificate. */
export async function startAgentsWorld(
  ...[credentials, answer, logins]: TailOf<Parameters<typeof startServices>>
): Promise<AgentsWorld | null> {
  const programs = await installAgents();
  if (programs === null) return null;
  const scratch = mkdtempSync(join(tmpdir(), 'svc-e2e-agents-'));
  const ca = await createTestCa();
  const services = await startServices(await ca.issue(SERVICE_HOSTS), credentials, answer, logins);
  const resolve = SERVICE_HOSTS.map((host) => `${host}:127.0.0.1:${services.port}`);
  const svc = await Svc.up({ upstreamCaFiles: [ca.file], resolve });
  const stop = async (): Promise<void> => {
    await svc.stop();
    await services.close();
    rmSync(scratch, { recursive: true, force: true });
  };
  return { programs, services, svc, scratch, stop };
}

type TailOf<List extends readonly unknown[]> = List extends [unknown, ...infer Tail] ? Tail : never;
