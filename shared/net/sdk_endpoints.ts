/** Where a session asks the sidecar for container credentials of AWS. */
export const AWS_CREDENTIALS_PATH = '/v1/sdk/aws/credentials';
/** Where it asks for tokens of a managed identity of Azure, as on App Service. */
export const AZURE_TOKEN_PATH = '/v1/sdk/azure/token';
/** Where Google's libraries ask for everything, on a host that is the session's alone. */
export const GOOGLE_METADATA_PATH = '/computeMetadata';

/** The SDKs for which the sidecar has an endpoint in a session. */
export const SDK_ENDPOINTS = ['aws', 'google', 'azure'] as const;
export type SdkEndpoint = (typeof SDK_ENDPOINTS)[number];

/** Variables that would lead an SDK to other credentials than those of the session. */
const FOREIGN: { readonly [S in SdkEndpoint]: readonly string[] } = {
  aws: ['AWS_CONTAINER_CREDENTIALS_RELATIVE_URI', 'AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE'],
  google: [],
  azure: [
    'MSI_ENDPOINT',
    'MSI_SECRET',
    'IMDS_ENDPOINT',
    'IDENTITY_SERVER_THUMBPRINT',
    'IDENTITY_API_VERSION',
    'AZURE_POD_IDENTITY_AUTHORITY_HOST',
  ],
};

/** The variables of each SDK's endpoint. */
const OF_ENDPOINT: { readonly [S in SdkEndpoint]: RegExp } = {
  aws: /^AWS_CONTAINER_/,
  google: /^GCE_METADATA_/,
  azure: /^(?:IDENTITY_|MSI_|IMDS_ENDPOINT$)/,
};

/** How a session's programs reach the sidecar. */
export interface SdkAccess {
  readonly origin: string;
  readonly token: string;
  /** `host:port` of a listener that answers this session alone, because Google's libraries send no token; null if there is none. */
  readonly metadataHost: string | null;
}

/**
 * The variables by which SDKs find the endpoints. Those of AWS accept http only on loopback, so a session whose proxy is at
 * another address has none.
 */
export function sdkVariables(
  endpoints: readonly SdkEndpoint[],
  { origin, token, metadataHost }: SdkAccess,
): Readonly<Record<string, string>> {
  const isNear = isLoopback(new URL(origin).hostname);
  const variables: Record<string, string> = {};
  if (isNear && endpoints.includes('aws')) {
    variables['AWS_CONTAINER_CREDENTIALS_FULL_URI'] = `${origin}${AWS_CREDENTIALS_PATH}`;
    variables['AWS_CONTAINER_AUTHORIZATION_TOKEN'] = `Bearer ${token}`;
  }
  if (isNear && endpoints.includes('azure')) {
    variables['IDENTITY_ENDPOINT'] = `${origin}${AZURE_TOKEN_PATH}`;
    variables['IDENTITY_HEADER'] = token;
  }
  if (metadataHost !== null && endpoints.includes('google')) {
    // Go and Java read the first, older Python the second, and Node and Python's first look the third.
    for (const name of ['HOST', 'ROOT', 'IP']) variables[`GCE_METADATA_${name}`] = metadataHost;
  }
  return variables;
}

/** The variables to remove from an environment that gets those of {@link sdkVariables}. */
export function foreignSdkVariables(variables: Readonly<Record<string, string>>): readonly string[] {
  return SDK_ENDPOINTS.filter((sdk) => Object.keys(variables).some((name) => OF_ENDPOINT[sdk].test(name))).flatMap(
    (sdk) => FOREIGN[sdk],
  );
}

/** The endpoints for which none of these variables names another. */
export function unclaimedEndpoints(
  endpoints: readonly SdkEndpoint[],
  given: Readonly<Record<string, string>>,
): readonly SdkEndpoint[] {
  return endpoints.filter((sdk) => !Object.keys(given).some((name) => OF_ENDPOINT[sdk].test(name)));
}

function isLoopback(host: string): boolean {
  return /^127(?:\.\d{1,3}){3}$/.test(host) || host === '[::1]' || host === 'localhost';
}
