import { defineConfig } from 'vitest/config';
import { HANGS_MS } from './e2e/support/hangs.ts';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** The tests that need a Docker engine, and what is in the images made for it. */
const CONTAINERS = [
  'e2e/containers/*.test.ts',
  'e2e/images/*.test.ts',
  'e2e/mcp/{gateway_container,in_container,sealed_container}.test.ts',
];

/**
 * Only with `npm run test:full`. Each repeats in another place what a file of every run shows: further agents and MCP clients,
 * users and engines, and the images of a release.
 */
const ONLY_FULL =
  process.env['SVC_TEST_FULL'] === '1'
    ? []
    : [
        'e2e/containers/agent_matrix.test.ts',
        'e2e/containers/agents_of_users.test.ts',
        'e2e/containers/cloud_sdks.test.ts',
        'e2e/containers/rootless.test.ts',
        'e2e/images/release_images.test.ts',
        'e2e/mcp/clients/more_clients.test.ts',
        // An exported configuration starts the gateway in first_contact.test.ts and clients/clients.test.ts, and has no secret in a unit test.
        'e2e/mcp/export.test.ts',
      ];

/** They drive a suite of others that gives up after a time of its own. One at a time, after the others. */
const ALONE = ['e2e/mcp/conformance/*.test.ts'];

/** Short files with long tests. Started last, as the sizes of files have it, one would run while the other processors wait. */
const LONG = [
  'e2e/agents/agents.test.ts',
  'e2e/agents/new_login.test.ts',
  'e2e/agents/own_login.test.ts',
  'e2e/bad_state.test.ts',
  'e2e/console/firefox.test.ts',
  'e2e/console/walk_on_node.test.ts',
  'e2e/console/walk_on_workerd.test.ts',
  'e2e/containers/agent_launch.test.ts',
  'e2e/containers/agent_matrix.test.ts',
  'e2e/containers/podman.test.ts',
  'e2e/hosted/hosted.test.ts',
  'e2e/indistinguishable.test.ts',
  'e2e/matrix/matrix.test.ts',
  'e2e/matrix/upstream_proxy.test.ts',
  'e2e/mcp/first_contact.test.ts',
  'e2e/mcp/in_container.test.ts',
  'e2e/mcp/python_packages.test.ts',
  'e2e/runtimes/api_fuzz.test.ts',
  'e2e/restarts.test.ts',
  'e2e/runtimes/deploy.test.ts',
  'e2e/runtimes/vault_rotation.test.ts',
  'e2e/start.test.ts',
  'e2e/team/saml_simplesamlphp.test.ts',
  'e2e/team/team_story.test.ts',
  'sidecar/data_plane/malformed_replies.test.ts',
  'sidecar/data_plane/malformed_requests.test.ts',
  'sidecar/data_plane/over_http2.test.ts',
];

const isLong = ({ moduleId }: TestSpecification): boolean => LONG.some((file) => moduleId.endsWith(`/${file}`));

class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const known = files.filter(isLong);
    // oxlint-disable-next-line unicorn/no-array-sort -- not that of an array
    const rest = await super.sort(files.filter((file) => !isLong(file)));
    return [...known, ...rest];
  }
}

/** Builds what the tests run. */
const PACKAGE = 'e2e/support/package_setup.ts';

const END_TO_END = {
  environment: 'node',
  // As for the unit tests.
  isolate: false,
  setupFiles: ['e2e/support/file_setup.ts'],
  // Several programs, each of which may take as long as HANGS_MS says: only what hangs is ended.
  testTimeout: 2 * HANGS_MS,
  hookTimeout: 2 * HANGS_MS,
  expect: { poll: { timeout: HANGS_MS } },
  globalSetup: [PACKAGE],
};

export default defineConfig({
  test: {
    maxWorkers: '100%',
    sequence: { sequencer: LongFirst },
    // Node itself reads TypeScript: no file is transformed, and nothing is mocked that a loader would have to replace.
    experimental: { viteModuleRunner: false },
    // Two projects may run side by side, in two processes, and would both write it.
    cache: false,
    projects: [
      {
        test: {
          name: 'unit',
          include: ['{shared,machine,sandbox,gateway,sidecar,cli,worker,tools,catalog}/**/*.test.ts'],
          environment: 'node',
          // The files of a worker share its modules: no test changes one, and most of the time went into loading them again.
          isolate: false,
          // A test that hangs ends some time; a machine that does other things too may be slow.
          testTimeout: 300_000,
          hookTimeout: 300_000,
          expect: { poll: { timeout: 200_000 } },
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['e2e/**/*.test.ts'],
          exclude: [...CONTAINERS, ...ALONE, ...ONLY_FULL],
          ...END_TO_END,
        },
      },
      { test: { name: 'e2e-alone', include: ALONE, ...END_TO_END, isolate: true, fileParallelism: false } },
      {
        test: {
          name: 'containers',
          include: CONTAINERS,
          exclude: ONLY_FULL,
          ...END_TO_END,
          globalSetup: [PACKAGE, 'e2e/containers/global_setup.ts'],
        },
      },
    ],
  },
});
