import { afterAll } from 'vitest';
import { describeControlApi } from './control_api_suite.ts';
import { type ControlPlaneUnderTest, startLibsqlServer, startOnDeno, startOnNode, startOnWorkerd } from './programs.ts';

const stops: (() => Promise<void>)[] = [];
afterAll(async () => {
  await Promise.all(stops.map((stop) => stop()));
});

/** A libSQL server of its own for each runtime, stopped when all are done. */
async function onServer(start: (url: string) => Promise<ControlPlaneUnderTest>): Promise<ControlPlaneUnderTest> {
  const server = await startLibsqlServer();
  stops.push(() => server.stop());
  return start(server.url);
}

describeControlApi('Node with the embedded database', startOnNode);
describeControlApi('Deno with a libSQL server', () => onServer(startOnDeno));
describeControlApi('workerd with a libSQL server', () => onServer(startOnWorkerd));
