// The AWS SDK for JavaScript with its defaults. Its arguments: endpoint, bucket, number of parts. Uploads parts of 8 MiB and a stream of
// known length with the checksum trailer that the SDK adds by itself, and reads both back.
import { createHash, randomBytes } from 'node:crypto';
import { Agent } from 'node:https';
import { Readable } from 'node:stream';
import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  PutObjectCommand,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';

const MIB = 1024 * 1024;
const PART_BYTES = 8 * MIB;
const [endpoint, Bucket, parts] = process.argv.slice(2);
const PARTS = Number(parts);
// The SDK hands its requests to an agent of its own; this is how that one is told to look at the environment.
const httpsAgent = new Agent({ keepAlive: true, proxyEnv: process.env });
const s3 = new S3Client({
  endpoint,
  region: 'us-east-1',
  forcePathStyle: true,
  maxAttempts: 1,
  requestHandler: { httpsAgent },
});

const digest = (bytes) => createHash('sha256').update(bytes).digest('hex');
const read = async (Key) =>
  digest(await (await s3.send(new GetObjectCommand({ Bucket, Key }))).Body.transformToByteArray());

const large = Buffer.concat(Array.from({ length: PARTS * 8 }, () => randomBytes(MIB)));
const { UploadId } = await s3.send(new CreateMultipartUploadCommand({ Bucket, Key: 'large.bin' }));
const Parts = [];
for (let PartNumber = 1; PartNumber <= PARTS; PartNumber += 1) {
  const Body = large.subarray((PartNumber - 1) * PART_BYTES, PartNumber * PART_BYTES);
  const part = { Bucket, Key: 'large.bin', UploadId, PartNumber };
  const { ETag } = await s3.send(new UploadPartCommand({ ...part, Body }));
  Parts.push({ PartNumber, ETag });
}
const whole = { Bucket, Key: 'large.bin', UploadId, MultipartUpload: { Parts } };
await s3.send(new CompleteMultipartUploadCommand(whole));

const streamed = randomBytes(3 * MIB);
const chunks = Readable.from([streamed.subarray(0, MIB), streamed.subarray(MIB)]);
await s3.send(new PutObjectCommand({ Bucket, Key: 'streamed.bin', Body: chunks, ContentLength: streamed.length }));

process.stdout.write(
  `${large.length / MIB} ${(await read('large.bin')) === digest(large)} ${(await read('streamed.bin')) === digest(streamed)}\n`,
);
for (const Key of ['large.bin', 'streamed.bin']) await s3.send(new DeleteObjectCommand({ Bucket, Key }));
