# boto3 with its defaults. Its arguments: endpoint, bucket. Puts, lists, uploads in parts, reads back, deletes.
import hashlib
import os
import sys
import tempfile

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config

MIB = 1024 * 1024
KEY = "reports/2026 Q1 (final)/a+b=c.txt"
endpoint, bucket = sys.argv[1:]
config = Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1})
s3 = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", config=config)

s3.put_object(Bucket=bucket, Key=KEY, Body=b"a report")
listed = [item["Key"] for item in s3.list_objects_v2(Bucket=bucket, Prefix="reports/")["Contents"]]
read = s3.get_object(Bucket=bucket, Key=KEY)["Body"].read().decode()
large = os.urandom(MIB) * 20
with tempfile.TemporaryDirectory() as folder:
    source, target = os.path.join(folder, "source"), os.path.join(folder, "target")
    with open(source, "wb") as file:
        file.write(large)
    parts = TransferConfig(multipart_threshold=8 * MIB, multipart_chunksize=8 * MIB)
    s3.upload_file(source, bucket, "large.bin", Config=parts)
    s3.download_file(bucket, "large.bin", target, Config=parts)
    with open(target, "rb") as file:
        same = hashlib.sha256(file.read()).digest() == hashlib.sha256(large).digest()
s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": KEY}, {"Key": "large.bin"}]})
left = s3.list_objects_v2(Bucket=bucket).get("KeyCount")
print(listed == [KEY], read, same, left)
