/** Where a session asks the sidecar for container credentials of AWS. */
export const AWS_CREDENTIALS_PATH = '/v1/sdk/aws/credentials';

/** The SDKs for which the sidecar has an endpoint in a session. */
export const SDK_ENDPOINTS = ['aws'] as const;
export type SdkEndpoint = (typeof SDK_ENDPOINTS)[number];

/** Variables that would lead an SDK to other credentials than those of the session. */
export const FOREIGN_SDK_VARIABLES: { readonly [S in SdkEndpoint]: readonly string[] } = {
  aws: ['AWS_CONTAINER_CREDENTIALS_RELATIVE_URI', 'AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE'],
};

/**
 * The variables by which SDKs find the endpoints. They accept http only on loopback, so a session whose proxy is at another
 * address has none.
 */
export function sdkVariables(
  endpoints: readonly SdkEndpoint[],
  { origin, token }: { readonly origin: string; readonly token: string },
): Readonly<Record<string, string>> {
  if (!endpoints.includes('aws') || !isLoopback(new URL(origin).hostname)) return {};
  return {
    AWS_CONTAINER_CREDENTIALS_FULL_URI: `${origin}${AWS_CREDENTIALS_PATH}`,
    AWS_CONTAINER_AUTHORIZATION_TOKEN: `Bearer ${token}`,
  };
}

function isLoopback(host: string): boolean {
  return /^127(?:\.\d{1,3}){3}$/.test(host) || host === '[::1]' || host === 'localhost';
}
