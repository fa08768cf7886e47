# Writes the smallest wheel that pip takes. Its argument: the file to write.
import sys
import zipfile

INFO = "demo-1.0.dist-info"
with zipfile.ZipFile(sys.argv[1], "w") as wheel:
    wheel.writestr("demo.py", "NAME = 'demo'\n")
    wheel.writestr(f"{INFO}/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")
    wheel.writestr(f"{INFO}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(f"{INFO}/RECORD", "")
