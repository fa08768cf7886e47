"""Opens a WebSocket at a host through the proxy of the environment, and prints what it echoes."""
import base64, os, socket, ssl, sys, urllib.parse

host = sys.argv[1]
proxy = urllib.parse.urlsplit(os.environ['https_proxy'])
raw = socket.create_connection((proxy.hostname, proxy.port))
word = base64.b64encode(f'{proxy.username}:{proxy.password}'.encode()).decode()
raw.sendall(f'CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\nProxy-Authorization: Basic {word}\r\n\r\n'.encode())
assert b' 200 ' in raw.recv(4096)
tls = ssl.create_default_context(cafile=os.environ['SSL_CERT_FILE']).wrap_socket(raw, server_hostname=host)
head = f'GET /socket HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n'
tls.sendall((head + 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n').encode())
reply = b''
while b'\r\n\r\n' not in reply:
    reply += tls.recv(4096)
assert b' 101 ' in reply, reply
tls.sendall(b'\x81\x05hello')
echo = b''
while len(echo) < 7:
    echo += tls.recv(4096)
print(echo[2:].decode())
