import { Agent, request } from 'undici';
import { plantSecret } from '../support/planted_secret.ts';
import { reply } from '../support/tls_upstream.ts';
import { Machine } from './machine.ts';
import { Person } from './person.ts';
import type { StartHosted } from './team_runtimes.ts';
import { startTeamWorld, type TeamWorld } from './team_world.ts';

/** The people of a story, each with a browser, and the computers of two of them. */
export interface Team {
  readonly world: TeamWorld;
  readonly founder: Person;
  readonly pat: Person;
  readonly sam: Person;
  readonly patsMachine: Machine;
  readonly samsMachine: Machine;
  /** The token of the directory, after the founder made it. */
  directory: string;
  /** The credential of the API. */
  readonly secret: string;
  /** What nobody may find anywhere. */
  readonly secrets: string[];
  /** When requests with the credential came to the API. */
  readonly injectedAt: readonly number[];
  /** A call of the directory, or of a program with a token. */
  readonly call: (token: string, method: 'GET' | 'POST' | 'DELETE', path: string, body?: object) => Promise<Answer>;
  stop(): Promise<void>;
}

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

export async function startTeam(start: StartHosted): Promise<Team> {
  const secret = plantSecret();
  const injectedAt: number[] = [];
  const world = await startTeamWorld(start);
  world.upstream.onRequest(async (exchange) => {
    await exchange.readBody();
    const isInjected = exchange.request.headers('authorization').includes(`Bearer ${secret}`);
    if (isInjected) injectedAt.push(Date.now());
    exchange.write(reply(isInjected ? 200 : 401));
  });
  const patsMachine = await Machine.at(world);
  const samsMachine = await Machine.at(world);
  const dispatcher = new Agent({ connect: { ca: world.ca.pem } });
  return {
    world,
    founder: await Person.at(world, 'Fay'),
    pat: await Person.at(world, 'Pat'),
    sam: await Person.at(world, 'Sam'),
    patsMachine,
    samsMachine,
    directory: '',
    secret,
    secrets: [secret],
    injectedAt,
    async call(token, method, path, body) {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      const sent = body === undefined ? {} : { body: JSON.stringify(body) };
      const answer = await request(world.origin + path, { method, headers, dispatcher, ...sent });
      const text = await answer.body.text();
      return { status: answer.statusCode, body: text === '' ? null : JSON.parse(text) };
    },
    async stop() {
      for (const machine of [patsMachine, samsMachine]) await machine.stop();
      await dispatcher.close();
      await world.stop();
    },
  };
}
