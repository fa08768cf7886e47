// google-auth-library with its application default credentials. Its arguments: the URL of the items, the folder of the package. It
// finds the metadata server by the environment alone.
import { createRequire } from 'node:module';
import { join } from 'node:path';

const [url, folder] = process.argv.slice(2);
const { GoogleAuth } = createRequire(join(folder, 'package.json'))('google-auth-library');
const auth = new GoogleAuth({ scopes: ['https://www.googleapis.com/auth/cloud-platform'] });
const client = await auth.getClient();
const read = await client.request({ url });
const made = await client.request({ url, method: 'POST', data: { title: 'a' } });
process.stdout.write(`${client.constructor.name} ${read.status} ${made.status}\n`);
