// @azure/identity with its default credential, and the pipeline of the Azure SDKs. Its arguments: the URL of the items, the folder of
// the packages. It finds the endpoint of the managed identity by the environment alone.
import { createRequire } from 'node:module';
import { join } from 'node:path';

const [url, folder] = process.argv.slice(2);
const load = createRequire(join(folder, 'package.json'));
const { DefaultAzureCredential } = load('@azure/identity');
const rest = load('@azure/core-rest-pipeline');
const pipeline = rest.createPipelineFromOptions({ retryOptions: { maxRetries: 0 } });
const scopes = `${new URL(url).origin}/.default`;
pipeline.addPolicy(rest.bearerTokenAuthenticationPolicy({ credential: new DefaultAzureCredential(), scopes }));
const send = async (method, body) => {
  const request = rest.createPipelineRequest({ url, method, ...(body !== undefined && { body }) });
  return (await pipeline.sendRequest(rest.createDefaultHttpClient(), request)).status;
};
process.stdout.write(`${await send('GET')} ${await send('POST', '{"title":"a"}')}\n`);
