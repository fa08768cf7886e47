# boto3 with its defaults. Its argument: the endpoint. It finds the endpoint of the credentials by the environment alone.
import sys

import boto3

s3 = boto3.client("s3", endpoint_url=sys.argv[1])
print(s3.list_buckets()["Buckets"])
