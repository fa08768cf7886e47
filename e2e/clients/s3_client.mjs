// A typical agent's use of S3: put, get, head, list, delete. Its arguments: endpoint, bucket, region. Credentials and proxy
// come from the environment, as usual.
import { Agent } from 'node:https';
import { Readable } from 'node:stream';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';

const [endpoint, Bucket, region] = process.argv.slice(2);
const httpsAgent = new Agent({ keepAlive: true, proxyEnv: process.env });
const s3 = new S3Client({
  endpoint,
  region,
  forcePathStyle: true,
  maxAttempts: 1,
  requestHandler: { httpsAgent },
});

const Key = 'reports/2026 Q1 (final)/a+b=c.txt';
await s3.send(new PutObjectCommand({ Bucket, Key, Body: 'a report', ContentType: 'text/plain' }));
const streamed = 'x'.repeat(200_000);
await s3.send(
  new PutObjectCommand({
    Bucket,
    Key: 'streamed.bin',
    Body: Readable.from([streamed]),
    ContentLength: streamed.length,
  }),
);
const got = await s3.send(new GetObjectCommand({ Bucket, Key }));
const large = await s3.send(new GetObjectCommand({ Bucket, Key: 'streamed.bin' }));
const head = await s3.send(new HeadObjectCommand({ Bucket, Key }));
const listed = await s3.send(new ListObjectsV2Command({ Bucket, Prefix: 'reports/2026 Q1 (final)/' }));
await s3.send(new DeleteObjectCommand({ Bucket, Key }));
const left = await s3.send(new ListObjectsV2Command({ Bucket }));
process.stdout.write(
  JSON.stringify({
    body: await got.Body.transformToString(),
    streamedBytes: (await large.Body.transformToString()).length,
    length: head.ContentLength,
    listed: listed.Contents.map((object) => object.Key),
    left: left.Contents.map((object) => object.Key),
  }),
);
