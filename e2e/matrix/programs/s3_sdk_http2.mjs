// The AWS SDK for JavaScript with its handler for HTTP/2, which knows no proxy. Its arguments: endpoint, bucket.
import process from 'node:process';
import { GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { NodeHttp2Handler } from '@smithy/node-http-handler';
import { openTunnel } from './tunnel.mjs';

const [endpoint, Bucket] = process.argv.slice(2);
const connection = await openTunnel(new URL(endpoint).hostname);
const s3 = new S3Client({
  endpoint,
  region: 'us-east-1',
  forcePathStyle: true,
  maxAttempts: 1,
  requestHandler: new NodeHttp2Handler({ nodeHttp2ConnectOptions: { createConnection: () => connection } }),
});
await s3.send(new PutObjectCommand({ Bucket, Key: 'a b.txt', Body: 'a report' }));
const { Body } = await s3.send(new GetObjectCommand({ Bucket, Key: 'a b.txt' }));
process.stdout.write(`${await Body.transformToString()}\n`);
s3.destroy();
