// The AWS SDK for JavaScript with its defaults. Its argument: the endpoint. It finds the endpoint of the credentials by the
// environment alone.
import { Agent } from 'node:https';
import { ListBucketsCommand, S3Client } from '@aws-sdk/client-s3';

// The SDK hands its requests to an agent of its own; this is how that one is told to look at the environment.
const httpsAgent = new Agent({ proxyEnv: process.env });
const s3 = new S3Client({ endpoint: process.argv[2], requestHandler: { httpsAgent } });
process.stdout.write(`${JSON.stringify((await s3.send(new ListBucketsCommand({}))).Buckets ?? [])}\n`);
