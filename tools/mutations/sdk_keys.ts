import type { Mutation } from '../mutation.ts';

const ROUTES = 'sidecar/local_api/sdk_routes.ts';
const ROUTES_TEST = 'sidecar/local_api/sdk_routes.test.ts';
const AWS_TEST = 'sidecar/local_api/aws_placeholder.test.ts';
const ENDPOINT = 'cli/launch/metadata_endpoint.ts';
const ENDPOINT_TEST = 'cli/launch/metadata_endpoint.test.ts';
const VARIABLES = 'shared/net/sdk_endpoints.ts';
const VARIABLES_TEST = 'shared/net/sdk_endpoints.test.ts';
const row = 'Placeholder keys for SDKs';

/** Checks of the endpoints that speak the protocols of clouds (decision 0117). */
export const SDK_KEY_MUTATIONS: readonly Mutation[] = [
  {
    row,
    holds: 'the endpoint of AWS answers a session only',
    file: ROUTES,
    text: "if (caller.kind !== 'session') return errorReply(TOKEN_REQUIRED);",
    replacement: "if (caller.kind !== 'session') return c.json({});",
    tests: [AWS_TEST],
  },
  {
    row,
    holds: 'keys of AWS carry the sentinel of a binding that swaps one, not its access key id',
    file: 'sidecar/local_api/aws_placeholder.ts',
    text: "emit.mechanism === 'sentinel-swap' ? emit.sentinel : injection.accessKeyId",
    replacement: 'injection.accessKeyId',
    tests: [AWS_TEST],
  },
  {
    row,
    holds: 'the endpoint of Azure answers the token of a session in its own header only',
    file: ROUTES,
    text: 'const token = c.req.header(AZURE_HEADER);',
    replacement: "const token = c.req.header(AZURE_HEADER) ?? c.req.header('authorization')?.slice(7);",
    tests: [ROUTES_TEST],
  },
  {
    row,
    holds: 'the metadata server answers no request without Metadata-Flavor',
    file: ROUTES,
    text: "if (headers.get(FLAVOR) !== 'Google') return metadataText(403, 'Missing Metadata-Flavor:Google header.');",
    replacement: '',
    tests: [ROUTES_TEST],
  },
  {
    row,
    holds: 'the metadata server answers no request that a proxy forwarded',
    file: ROUTES,
    text: "if (headers.has('x-forwarded-for')) return metadataText(403, 'X-Forwarded-For is not allowed.');",
    replacement: '',
    tests: [ROUTES_TEST],
  },
  {
    row,
    holds: 'the metadata server has nothing for a session that has ended',
    file: ROUTES,
    text: 'owner === null ? null : sessions.get(owner.id)',
    replacement: 'owner',
    tests: [ROUTES_TEST],
  },
  {
    row,
    holds: 'only hosts of a cloud make its endpoint',
    file: 'sidecar/local_api/bearer_placeholder.ts',
    text: 'host.endsWith(`.${domain}`)',
    replacement: 'host.includes(domain)',
    tests: [ROUTES_TEST],
  },
  {
    row,
    holds: 'the listener of svc run carries nothing but metadata to the sidecar',
    file: ENDPOINT,
    text: 'path.origin !== origin || !isMetadata(path.pathname)',
    replacement: 'path.origin !== origin',
    tests: [ENDPOINT_TEST],
  },
  {
    row,
    holds: 'the listener of svc run sends the session’s token to its sidecar only',
    file: ENDPOINT,
    text: 'path.origin !== origin || !isMetadata(path.pathname)',
    replacement: '!isMetadata(path.pathname)',
    tests: [ENDPOINT_TEST],
  },
  {
    row,
    holds: 'the listener of svc run answers to no name but loopback’s',
    file: ENDPOINT,
    text: "if (!/^(?:127\\.0\\.0\\.1|localhost)(?::\\d{1,5})?$/i.test(headers.host ?? '')) return refuse(response, 421);",
    replacement: '',
    tests: [ENDPOINT_TEST],
  },
  {
    row,
    holds: 'the session’s token is in no variable for an endpoint outside of loopback',
    file: VARIABLES,
    text: 'const isNear = isLoopback(new URL(origin).hostname);',
    replacement: 'const isNear = origin.length > 0;',
    tests: [VARIABLES_TEST],
  },
  {
    row,
    holds: 'the session’s token is not sent to an endpoint that a person gives to a container',
    file: 'sandbox/launch/container_environment.ts',
    text: 'sdkVariables(unclaimedEndpoints(sdkEndpoints, given), {',
    replacement: 'sdkVariables(sdkEndpoints, {',
    tests: ['sandbox/launch/container_environment.test.ts'],
  },
  {
    row,
    holds: 'variables that lead to the role of the machine are not beside ours',
    file: 'sandbox/launch/session_environment.ts',
    text: 'for (const name of foreignSdkVariables(sdk)) delete environment[name];',
    replacement: '',
    tests: ['sandbox/launch/session_environment.test.ts'],
  },
];
