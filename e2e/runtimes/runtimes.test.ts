import { afterAll, describe, expect, test } from 'vitest';
import { describeControlApi } from './control_api_suite.ts';
import { type LibsqlCluster, startLibsqlCluster } from './libsql_cluster.ts';
import {
  type ControlPlaneUnderTest,
  type DatabaseUrls,
  startOnDeno,
  startOnNode,
  startOnNodeServer,
  startOnWorkerd,
} from './programs.ts';

const stops: (() => Promise<void>)[] = [];
afterAll(async () => {
  await Promise.all(stops.map((stop) => stop()));
});

/** Runs the suite on its own libSQL server and replica, which are stopped at the end. */
function describeOnServer(runtime: string, start: (database: DatabaseUrls) => Promise<ControlPlaneUnderTest>): void {
  const made: LibsqlCluster[] = [];
  describe(`${runtime} with a libSQL server and a replica`, () => {
    describeControlApi(`${runtime} with a libSQL server and a replica`, async () => {
      const cluster = await startLibsqlCluster();
      stops.push(cluster.stop);
      made.push(cluster);
      return start(cluster);
    });

    test('also used the replica', () => expect(made[0]?.replicaCalls()).toBeGreaterThan(3));
  });
}

describeControlApi('Node with the embedded database', () => startOnNode());
describeOnServer('Node', startOnNodeServer);
describeOnServer('Deno', startOnDeno);
describeOnServer('workerd', startOnWorkerd);
